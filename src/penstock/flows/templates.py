"""The definitions that `penstock flows new` begins with."""

from __future__ import annotations

from penstock.errors import ConfigError, nearest

TEMPLATES = {
    "kafka-to-rabbitmq": """\
name: {name}
trigger:
  kafka: {{topics: orders}}
steps:
  - filter: payload.total > 100
  - id: send
    publish:
      rabbitmq: {{url: "amqp://guest@localhost:5672", routing_key: large-orders}}
    retry: 5
tests:
  - name: large orders are sent
    messages:
      - payload: {{id: 1, total: 500}}
      - payload: {{id: 2, total: 5}}
    expect:
      status: {{done: 1, filtered: 1}}
      published:
        - {{step: send, value: {{id: 1}}, fields: {{routing_key: large-orders}}}}
""",
    "http-to-kafka": """\
name: {name}
trigger:
  http: {{path: /orders, format: json}}
steps:
  - validate: {{type: object, required: [id]}}
  - id: write
    publish:
      kafka: {{topic: orders, key: "${{payload.id}}"}}
tests:
  - name: an order without an id is a dead letter
    messages:
      - payload: {{id: 7}}
      - payload: {{total: 1}}
    expect:
      published: [{{topic: orders, key: "7"}}]
      dead_letters: [{{code: "CORE:VALIDATION"}}]
""",
    "timer-to-http-to-kafka": """\
name: {name}
trigger:
  timer: {{cron: "*/5 * * * *"}}
steps:
  - id: ask
    http: "https://api.example.com/prices?at=${{payload.time}}"
    retry: {{attempts: 4, wait: 1}}
  - split: payload.prices
  - id: write
    publish:
      kafka: {{topic: prices, key: "${{payload.symbol}}"}}
tests:
  - name: each price is a record
    messages: [{{payload: {{time: "2024-05-01T12:00:00Z"}}}}]
    replies:
      ask: {{body: {{prices: [{{symbol: A, price: 1}}, {{symbol: B, price: 2}}]}}}}
    expect:
      published:
        - {{topic: prices, key: A, value: {{price: 1}}}}
        - {{topic: prices, key: B, value: {{price: 2}}}}
""",
}


def definition_of(template: str, name: str) -> str:
    """Return the definition of a template, for a flow of this name."""
    if template not in TEMPLATES:
        known = [*TEMPLATES]
        raise ConfigError(f"there is no template {template!r}; {nearest(template, known)}")
    return TEMPLATES[template].format(name=name)
