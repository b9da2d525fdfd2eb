"""Stateful steps: they run on Spark's stream, before its batches are delivered.

`plan` says what runs where; `stateful_stream` builds it; `branch_metrics` reads its counts; `late_rows`
finds rows that came too late; `stateful_writing` writes a batch; `memory` refuses incompatible changes.
"""
