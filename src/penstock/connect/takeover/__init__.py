"""Taking connectors over from a running Kafka Connect cluster, with their offsets."""
