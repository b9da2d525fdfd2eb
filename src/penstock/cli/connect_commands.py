"""`penstock connect`: workers from Kafka Connect's property files, and the import of a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.connect_import import import_cluster
from penstock.cli.connect_settings import report, serve_options
from penstock.cli.serve_options import ServeOptions
from penstock.cli.worker_commands import KeysOption, StateOption, StoreOption
from penstock.connect.worker_defaults import CONNECT_WORKER
from penstock.connect.worker_settings import read_worker

app = typer.Typer(
    no_args_is_help=True,
    help="Workers from Kafka Connect's property files (standalone, distributed), and the import of the "
    "connectors of a running Connect cluster.",
)
app.command("import")(import_cluster)
WorkerFile = Annotated[
    Path, typer.Argument(metavar="WORKER.PROPERTIES", help="The property file of a Connect worker.")
]
Memory = Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of Spark, as in 2g.")]
Conf = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="A Spark setting; may be repeated.")
]
Certificate = Annotated[
    str | None, typer.Option(metavar="FILE", help="The certificate of an https listener (PEM).")
]
CertificateKey = Annotated[str | None, typer.Option(metavar="FILE", help="Its key (PEM).")]
BehindProxy = Annotated[
    bool | None, typer.Option("--behind-proxy", help="A proxy with TLS forwards requests.")
]
AllowedHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A name by which the API is called; may be repeated."),
]


@app.command()
def standalone(
    worker: WorkerFile,
    connectors: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[CONNECTOR...]", help="Files of connectors: .properties, .json."),
    ] = None,
    *,
    memory: Memory = None,
    conf: Conf = None,
) -> None:
    """Run connectors in this process, with the REST API, until Ctrl-C; nothing else has to be set up.

    For example: penstock connect standalone worker.properties file-source.properties

    The store of the connectors is a folder next to offset.storage.file.filename; without that key it is
    in the data folder of the user. Connectors of the folder that no file names are stopped.
    """
    settings = read_worker(worker)
    report(settings)
    options = serve_options(settings, ServeOptions(memory=memory, conf=tuple(conf or ())))
    from penstock.cli.connect_standalone import run_standalone  # noqa: PLC0415 - with Spark

    run_standalone(settings, options, connectors or [])


@app.command()
def distributed(
    worker: WorkerFile,
    *,
    store: StoreOption = None,
    keys: KeysOption = None,
    state: StateOption = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=64, help="Worker processes to start; default: 1; 0: API only."),
    ] = None,
    memory: Memory = None,
    conf: Conf = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    behind_proxy: BehindProxy = None,
    allowed_host: AllowedHost = None,
) -> None:
    """Serve the REST API, and run connectors in worker processes that share a store with other machines.

    For example: penstock connect distributed worker.properties --store postgresql://penstock@db/penstock

    The same file on each machine gives connectors the same cluster and converters. Other options are
    those of the section server: of penstock.yaml, as for 'penstock serve'.
    """
    settings = read_worker(worker)
    report(settings)
    os.environ[CONNECT_WORKER] = str(worker.absolute())
    given = ServeOptions(
        store=store, keys=keys, state=state, workers=workers, memory=memory, conf=tuple(conf or ()),
        tls_cert=tls_cert, tls_key=tls_key, behind_proxy=behind_proxy,
        allowed_hosts=tuple(allowed_host or ()),
    )  # fmt: skip
    options = serve_options(settings, given)
    from penstock.cli.serve import run_server  # noqa: PLC0415 - with the server

    run_server(options)
