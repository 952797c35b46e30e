"""Connections for the exercises: one transaction, and Redis."""

import contextlib
import os

import psycopg2


@contextlib.contextmanager
def transaction():
    """Yields a cursor. COMMIT at the end, ROLLBACK after an exception."""
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    try:
        with connection, connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def redis():
    """A connection to Redis, to be used in a with statement."""
    import redis as client

    return client.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True).client()
