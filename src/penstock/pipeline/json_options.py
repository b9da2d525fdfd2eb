"""How Spark writes JSON: by default it cuts times to milliseconds, and leaves nulls out."""

EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
EXACT_JSON = {**EXACT_TIMES, "ignoreNullFields": "false"}
