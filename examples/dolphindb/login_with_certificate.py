"""SSL with a certificate of one's own; the places of the files come from the environment."""

import os

from here import BROKERS, new_topic

from penstock.compat import dolphindb as kafka

test = new_topic("test")
producerCfg = {}
producerCfg["bootstrap.servers"] = BROKERS
producerCfg["security.protocol"] = "ssl"
producerCfg["ssl.ca.location"] = os.environ["PENSTOCK_KAFKA_SSL_CA_LOCATION"]
producerCfg["ssl.certificate.location"] = os.environ["PENSTOCK_KAFKA_SSL_CERTIFICATE_LOCATION"]
producerCfg["ssl.key.location"] = os.environ["PENSTOCK_KAFKA_SSL_KEY_LOCATION"]
producerCfg["ssl.key.password"] = os.environ["PENSTOCK_KAFKA_SSL_KEY_PASSWORD"]
producer = kafka.producer(producerCfg)

kafka.produce(producer, test, "key", "let in", "PLAIN")
kafka.producerFlush(producer)
print(f"{producer.delivered} delivered")
