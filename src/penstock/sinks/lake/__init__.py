"""What the sinks `delta` and `iceberg` share: tables with a log, where a commit is one atomic act."""
