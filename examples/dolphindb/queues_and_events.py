"""Version 1.30: the queue of a consumer, and the events in it."""

from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

test = new_topic("test")
producer = kafka.producer({"metadata.broker.list": BROKERS})
for value in (10086, 123.456):
    kafka.produce(producer, test, "1", value, False, 0)
kafka.producerFlush(producer)

consumer = kafka.consumer({"metadata.broker.list": BROKERS, "group.id": unique()})
kafka.assign(consumer, [test], [0], [0])

queue = kafka.getConsumerQueue(consumer)
kafka.setQueueTime(queue, PATIENCE)
error, message = kafka.queuePoll(queue)
print(message[2])

event = kafka.queueEvent(queue)
print(kafka.queueLength(queue))
print(kafka.getEventName(event))
print([message[2] for error, message in kafka.eventGetMessage(event)])
print(kafka.getEventMessageCount(event))
print(kafka.eventGetPart(event)[1:])
print(repr(kafka.eventGetError(event)))
print(kafka.eventBool(event))
