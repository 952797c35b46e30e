# shellcheck shell=bash disable=SC2034,SC2154  # read by stack/stack, and set there
# PostgreSQL, with all its durability on: the shop. Its superuser is `shop`, with a password made for this stack.

KINDS[postgres]='postgres postgres 10 INT QUIT'  # fast: sessions are cut and a checkpoint is written; then immediate

# Prints the folder of the newest installed PostgreSQL's programs.
postgres_programs()
{
    local found
    found=$(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1)
    [[ -x $found ]] || found=$(command -v postgres) || return 1
    dirname "$found"
}

postgres_installed()
{
    postgres_programs >/dev/null || not_installed postgresql
}

postgres_prepare()
{
    make_password &&
        as_user "$user" tee "$folder/password" <"$dir/$name.password" >/dev/null &&
        as_user "$user" "$(postgres_programs)/initdb" --pgdata "$folder/data" --username shop \
            --pwfile "$folder/password" --auth scram-sha-256 --encoding UTF8 --locale C.UTF-8 --no-instructions &&
        as_user "$user" rm "$folder/password" &&
        as_user "$user" tee -a "$folder/data/postgresql.conf" >/dev/null <<'CONF'

# The settings of this stack.
listen_addresses = '127.0.0.1'
unix_socket_directories = '.'           # inside the data folder, which nobody else can enter
max_connections = 200
shared_buffers = '128MB'
fsync = on
synchronous_commit = on
full_page_writes = on
track_commit_timestamp = on
timezone = 'UTC'
log_timezone = 'UTC'
log_min_messages = log                  # an order that loses a race is no news: no line for each SQL error
log_checkpoints = off
CONF
}

postgres_command()
{
    # None of its processes is left, so these are stale, even where a zombie or a stranger has their number.
    as_user "$user" rm -f "$folder/data/postmaster.pid" "$folder/data/.s.PGSQL.$port"{,.lock}
    command=("$(postgres_programs)/postgres" -D "$folder/data" -p "$port")
}

postgres_ready()
{
    local lines
    mapfile -t lines < <(as_user "$user" cat "$folder/data/postmaster.pid" 2>/dev/null)
    [[ ${lines[0]:-} == "$pid" && ${lines[7]:-} == ready* ]] || return 1
    # This also shows that the address which `env` prints works as it is.
    PGCONNECT_TIMEOUT=3 "$(postgres_programs)/psql" -X -q -v ON_ERROR_STOP=1 "$(postgres_url postgres)" <<'SQL'
SELECT 'CREATE DATABASE shop' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'shop') \gexec
SQL
}

postgres_url()
{
    printf 'postgresql://shop:%s@127.0.0.1:%s/%s\n' "$(password)" "$port" "${1:-shop}"
}
