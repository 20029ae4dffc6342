"""Settings of a server: defaults, then `WOLFSTREAM_*` variables, then the command line."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Everything an operator can set; each field is also a variable, as in `WOLFSTREAM_PORT`."""

    model_config = SettingsConfigDict(env_prefix="WOLFSTREAM_", extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    insecure: bool = Field(False, description="Answer other machines also where there are no keys.")
    tls_cert: Path | None = Field(
        None, description="Certificate chain, PEM; with it the server speaks https and wss only."
    )
    tls_key: Path | None = Field(None, description="Private key of the certificate, PEM.")
    data: Path = Field(Path("wolfstream-data"), description="Directory of the log and snapshots.")
    threads: int = Field(1, ge=1, description="Threads of a matrix product.")
    queue_samples: int = Field(65_536, ge=1, description="Samples that may wait to be learned.")
    queue_bytes: int = Field(
        256 << 20, ge=1, description="Bytes of memory that samples may take while they wait."
    )
    group_samples: int = Field(4_096, ge=1, description="Samples that may share one commit.")
    body_bytes: int = Field(
        64 << 20, ge=1024, description="Largest request body or frame, packed and unpacked."
    )
    request_rows: int = Field(100_000, ge=1, description="Rows in one request.")
    row_numbers: int = Field(100_000, ge=1, description="Numbers in one row.")
    models: int = Field(1_000, ge=1, description="Models that the server may have.")
    connections: int = Field(
        800, ge=1, description="Open connections, fewer than the system's bound on open files."
    )
    patience_seconds: float = Field(
        30.0,
        gt=0,
        description="Longest wait for a request to arrive, or for a client to read its answer.",
    )
    window: int = Field(256, ge=1, description="Unanswered messages on one websocket stream.")
    classes: int = Field(100, ge=2, description="Different labels that one model may meet.")
    features: int = Field(
        100_000, ge=1, description="Different feature names that one model may meet."
    )
    idempotency_keys: int = Field(
        100_000, ge=1, description="Newest idempotency keys that are remembered of each model."
    )
    refits: int = Field(16, ge=1, description="Refits that may wait for their turn.")
    snapshot_samples: int = Field(
        100_000, ge=1, description="Samples learned between two snapshots of a model."
    )
    wait_seconds: float = Field(
        5.0,
        gt=0,
        description="Longest wait for a sequence that min_sequence asks for, or of Prefer: wait.",
    )
