"""Rows into RabbitMQ, and the connection that the import `rabbitmq` uses, too."""
