"""Queues and topics of JMS brokers over AMQP 1.0, into Kafka."""
