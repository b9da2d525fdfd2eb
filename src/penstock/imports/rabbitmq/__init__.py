"""The import `rabbitmq`: messages of queues, acknowledged when Kafka has them."""
