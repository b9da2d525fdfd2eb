"""Steps that keep state: they run on Spark's stream, before its batches are handed out.

`plan` says what runs where; `stream` builds it; `seen` tells what came by; `late` finds what came too
late; `writing` writes a batch; `memory` refuses a change that what is kept cannot survive.
"""
