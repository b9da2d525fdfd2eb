"""The configuration keys as data: one line per key, so that a new librdkafka is a few lines here.

Columns: name, type with its allowed values, name in the Java client, other names for the same key.
In the third column `=` means the same name and `-` that the Java client has no such setting.
"""

from __future__ import annotations

COMMON = """
bootstrap.servers                          brokers              =   metadata.broker.list
client.id                                  str                  =
client.rack                                str                  =
client.dns.lookup      enum:use_all_dns_ips,resolve_canonical_bootstrap_servers_only  =
security.protocol      enum:plaintext,ssl,sasl_plaintext,sasl_ssl                     =
message.max.bytes                          int:1000..1000000000 max.request.size
message.copy.max.bytes                     int:0..1000000000    -
receive.message.max.bytes                  int:1000..2147483647 -
max.in.flight.requests.per.connection      int:1..1000000       =   max.in.flight
metadata.max.age.ms                        int:1..86400000      =
metadata.recovery.strategy                 enum:none,rebootstrap =
metadata.recovery.rebootstrap.trigger.ms   int:0..2147483647    -
topic.metadata.refresh.interval.ms         int:-1..3600000      -
topic.metadata.refresh.fast.interval.ms    int:1..60000         -
topic.metadata.refresh.fast.cnt            int:0..1000          -
topic.metadata.refresh.sparse              bool                 -
topic.metadata.propagation.max.ms          int:0..3600000       -
topic.blacklist                            str                  -
socket.timeout.ms                          int:10..300000       -
socket.blocking.max.ms                     int:1..60000         -
socket.send.buffer.bytes                   int:0..100000000     send.buffer.bytes
socket.receive.buffer.bytes                int:0..100000000     receive.buffer.bytes
socket.keepalive.enable                    bool                 -
socket.nagle.disable                       bool                 -
socket.max.fails                           int:0..1000000       -
socket.connection.setup.timeout.ms         int:1000..2147483647 =
broker.address.ttl                         int:0..86400000      -
broker.address.family                      enum:any,v4,v6       -
broker.version.fallback                    str                  -
connections.max.idle.ms                    int:0..2147483647    =
reconnect.backoff.ms                       int:0..3600000       =
reconnect.backoff.max.ms                   int:0..3600000       =
reconnect.backoff.jitter.ms                int:0..3600000       -
retry.backoff.ms                           int:1..300000        =
retry.backoff.max.ms                       int:1..300000        =
statistics.interval.ms                     int:0..86400000      -
enable.metrics.push                        bool                 =
enable.random.seed                         bool                 -
enabled_events                             int:0..2147483647    -
log_level                                  int:0..7             -
log.queue                                  bool                 -
log.thread.name                            bool                 -
log.connection.close                       bool                 -
internal.termination.signal                int:0..128           -
api.version.request                        bool                 -
api.version.request.timeout.ms             int:1..300000        -
api.version.fallback.ms                    int:0..604800000     -
allow.auto.create.topics                   bool                 =
plugin.library.paths                       str                  -
builtin.features                           str                  -
"""

# Apart, because the flags alone are longer than a line.
DEBUG_FLAGS = (
    "generic,broker,topic,metadata,feature,queue,msg,protocol,cgrp,security,fetch,interceptor,"
    "plugin,consumer,admin,eos,mock,assignor,conf,telemetry,all"
)

# The Java side of these is built by jaas.py and pem.py, not by renaming.
SECURITY = """
sasl.mechanisms        enum:GSSAPI,PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER  -  sasl.mechanism
sasl.username                              str                  -
sasl.password                              str                  -
sasl.kerberos.service.name                 str                  -
sasl.kerberos.principal                    str                  -
sasl.kerberos.keytab                       str                  -
sasl.kerberos.kinit.cmd                    str                  -
sasl.kerberos.min.time.before.relogin      int:0..86400000      =
sasl.oauthbearer.method                    enum:default,oidc    -
sasl.oauthbearer.config                    str                  -
sasl.oauthbearer.client.id      str  -  sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.client.secret  str  -  sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.scope                     str                  -
sasl.oauthbearer.extensions                str                  -
sasl.oauthbearer.token.endpoint.url        str                  -
sasl.oauthbearer.sub.claim.name            str                  =
sasl.oauthbearer.grant.type  enum:client_credentials,urn:ietf:params:oauth:grant-type:jwt-bearer -
sasl.oauthbearer.assertion.algorithm       enum:RS256,ES256     -
sasl.oauthbearer.assertion.file            str                  -
sasl.oauthbearer.assertion.private.key.file        str          -
sasl.oauthbearer.assertion.private.key.passphrase  str          -
sasl.oauthbearer.assertion.private.key.pem         str          -
sasl.oauthbearer.assertion.claim.aud               str          -
sasl.oauthbearer.assertion.claim.iss               str          -
sasl.oauthbearer.assertion.claim.sub               str          -
sasl.oauthbearer.assertion.claim.exp.seconds       int:1..2147483647  -
sasl.oauthbearer.assertion.claim.nbf.seconds       int:0..2147483647  -
sasl.oauthbearer.assertion.claim.jti.include       bool         -
sasl.oauthbearer.assertion.jwt.template.file       str          -
sasl.oauthbearer.metadata.authentication.type      enum:none,azure_imds,aws_iam  -
enable.sasl.oauthbearer.unsecure.jwt       bool                 -
ssl.ca.location                            str                  -
ssl.ca.pem                                 str                  -
ssl.ca.certificate.stores                  str                  -
ssl.certificate.location                   str                  -
ssl.certificate.pem                        str                  -
ssl.key.location                           str                  -
ssl.key.pem                                str                  -
ssl.key.password                           str                  -
ssl.keystore.location                      str                  -
ssl.keystore.password                      str                  -
ssl.crl.location                           str                  -
ssl.cipher.suites                          str                  -
ssl.curves.list                            str                  -
ssl.sigalgs.list                           str                  -
ssl.providers                              str                  -
ssl.engine.location                        str                  -
ssl.engine.id                              str                  -
ssl.endpoint.identification.algorithm      enum:none,https      =
enable.ssl.certificate.verification        bool                 -
https.ca.location                          str                  -
https.ca.pem                               str                  -
"""

PRODUCER = """
transactional.id                           str                  =
transaction.timeout.ms                     int:1000..2147483647 =
enable.idempotence                         bool                 =
enable.gapless.guarantee                   bool                 -
queue.buffering.max.messages               int:0..2147483647    -
queue.buffering.max.kbytes                 int:1..2147483647    buffer.memory
queue.buffering.backpressure.threshold     int:1..1000000       -
linger.ms                                  float:0..900000      =   queue.buffering.max.ms
retries                                    int:0..2147483647    =   message.send.max.retries
compression.type       enum:none,gzip,snappy,lz4,zstd           =   compression.codec
batch.num.messages                         int:1..1000000       -
batch.size                                 int:1..2147483647    =
delivery.report.only.error                 bool                 -
sticky.partitioning.linger.ms              int:0..900000        -
"""

# Topic keys may also be in `default.topic.config`.
PRODUCER_TOPIC = """
acks                                       acks:all,-1..1000    =   request.required.acks
request.timeout.ms                         int:1..900000        =
delivery.timeout.ms                        int:0..2147483647    =   message.timeout.ms
queuing.strategy                           enum:fifo,lifo       -
produce.offset.report                      bool                 -
compression.level                          int:-1..12           -
partitioner  enum:random,consistent,consistent_random,murmur2,murmur2_random,fnv1a,fnv1a_random  -
"""

CONSUMER = """
group.id                                   str                  =
group.instance.id                          str                  =
group.protocol                             enum:classic,consumer =
group.protocol.type                        str                  -
group.remote.assignor                      str                  =
partition.assignment.strategy  flags:range,roundrobin,sticky,cooperative-sticky  =
session.timeout.ms                         int:1..3600000       =
heartbeat.interval.ms                      int:1..3600000       =
max.poll.interval.ms                       int:1..86400000      =
max.poll.records                           int:1..2147483647    =
coordinator.query.interval.ms              int:1..3600000       -
enable.auto.offset.store                   bool                 -
enable.partition.eof                       bool                 -
queued.min.messages                        int:1..10000000      -
queued.max.messages.kbytes                 int:1..2097151       -
fetch.wait.max.ms                          int:0..300000        fetch.max.wait.ms  fetch.max.wait.ms
fetch.queue.backoff.ms                     int:0..300000        -
fetch.error.backoff.ms                     int:0..300000        -
fetch.max.bytes                            int:0..2147483135    =
fetch.min.bytes                            int:0..2147483647    =
max.partition.fetch.bytes                  int:1..1000000000    =   fetch.message.max.bytes
isolation.level        enum:read_uncommitted,read_committed     =
check.crcs                                 bool                 =
share.acknowledgement.mode                 enum:implicit,explicit -
"""

CONSUMER_TOPIC = """
auto.offset.reset  enum:smallest,earliest,beginning,largest,latest,end,error,none  =
enable.auto.commit                         bool                 =   auto.commit.enable
auto.commit.interval.ms                    int:0..86400000      =
consume.callback.max.messages              int:0..1000000       -
offset.store.method                        enum:none,file,broker -
offset.store.path                          str                  -
offset.store.sync.interval.ms              int:-1..86400000     -
"""
