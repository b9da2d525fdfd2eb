"""JMS over AMQP 1.0: the sink, and the connection that the source shares with it."""
