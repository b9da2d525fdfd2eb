"""The Kafka side of the REST API: topics, messages, groups, dead letters, schemas, components."""
