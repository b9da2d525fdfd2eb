"""Reading one partition from one offset on: partition 1 of "test", from offset 3000."""

from here import BROKERS, PATIENCE, new_topic

from penstock.compat import dolphindb as kafka

test = new_topic("test", partitions=2)
producer = kafka.producer({"metadata.broker.list": BROKERS})
for number in range(3001):
    kafka.produce(producer, test, "key", str(number), "PLAIN", 1)
kafka.producerFlush(producer)

consumer = kafka.consumer({"metadata.broker.list": BROKERS, "group.id": "group1"})
kafka.assign(consumer, test, 1, 3000)
error, message = kafka.consumerPoll(consumer, PATIENCE, "PLAIN")
print(message[2])
