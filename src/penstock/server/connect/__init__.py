"""The REST API of Kafka Connect over the deployments of the control plane."""
