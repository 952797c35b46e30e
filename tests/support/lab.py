"""The tools of the end-to-end tests, in one place to import from."""

from basics import DOCUMENT, PATIENCE, ROOT, SANITIZED, SOON_S, at_any_speed, stays, wait_until
from load import Background, Load, expect_balanced, expect_books, hammer, together
from proxy import Proxy
from servers import (
    CLIENT_SESSIONS,
    Session,
    Stack,
    holding,
    holding_row,
    number,
    password,
    psql,
    terminate_sessions,
    waiting_backends,
    with_database,
)
from service import Service, Services, next_free_id, run_service
from wire import Closed, Reply, Wire, as_body, chunked, has_open, request_bytes, unsent_bytes

__all__ = [
    "Background",
    "CLIENT_SESSIONS",
    "Closed",
    "DOCUMENT",
    "Load",
    "PATIENCE",
    "Proxy",
    "ROOT",
    "Reply",
    "SANITIZED",
    "SOON_S",
    "Service",
    "Services",
    "Session",
    "Stack",
    "Wire",
    "as_body",
    "at_any_speed",
    "chunked",
    "expect_balanced",
    "expect_books",
    "hammer",
    "has_open",
    "holding",
    "holding_row",
    "next_free_id",
    "number",
    "password",
    "psql",
    "request_bytes",
    "run_service",
    "stays",
    "terminate_sessions",
    "together",
    "unsent_bytes",
    "wait_until",
    "waiting_backends",
    "with_database",
]
