"""A producer and a consumer, from a dictionary."""

from here import BROKERS

from penstock.compat import dolphindb as kafka

producerCfg = {}
producerCfg["metadata.broker.list"] = BROKERS
producer = kafka.producer(producerCfg)

consumerCfg = {}
consumerCfg["group.id"] = "group1"
consumerCfg["metadata.broker.list"] = BROKERS
consumer = kafka.consumer(consumerCfg)

print(kafka.getProducerTime(producer), kafka.getConsumerTime(consumer), consumer.group)
