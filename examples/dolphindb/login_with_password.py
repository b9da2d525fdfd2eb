"""SASL with a password; user and password come from the environment."""

import os

from here import BROKERS, PATIENCE, new_topic

from penstock.compat import dolphindb as kafka

test = new_topic("test")
consumerCfg = {}
consumerCfg["metadata.broker.list"] = BROKERS
consumerCfg["group.id"] = "test"
consumerCfg["auto.offset.reset"] = "earliest"
consumerCfg["sasl.mechanisms"] = "PLAIN"
consumerCfg["security.protocol"] = "sasl_plaintext"
consumerCfg["sasl.username"] = os.environ["PENSTOCK_KAFKA_SASL_USERNAME"]
consumerCfg["sasl.password"] = os.environ["PENSTOCK_KAFKA_SASL_PASSWORD"]
consumer = kafka.consumer(consumerCfg)

# A producer takes the same keys, and leaves out those that are not for it.
producer = kafka.producer(consumerCfg)
kafka.produce(producer, test, "key", "let in", "DOLPHINDB")

topics = [test]
kafka.subscribe(consumer, topics)
error, message = kafka.consumerPoll(consumer, PATIENCE)
print(message[2])
