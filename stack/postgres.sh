# shellcheck shell=bash disable=SC2034,SC2154  # read by stack/stack, and set there
# PostgreSQL, with all its durability on: the shop. Services and the load lab connect as `shop`, who owns the shop's tables
# and nothing else (shop.sql). The superuser is `postgres`. Each has a password made for this stack.

KINDS[postgres]='postgres postgres 10 INT QUIT'  # fast: sessions are cut and a checkpoint is written; then immediate

# Prints the folder of the newest installed PostgreSQL's programs.
postgres_programs()
{
    local found
    found=$(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1)
    [[ -x $found ]] || found=$(command -v postgres) || return 1
    echo "${found%/*}"
}

postgres_installed()
{
    postgres_programs >/dev/null || not_installed postgresql
}

postgres_prepare()
{
    make_password "$name" && make_password "$name-admin.new" &&
        as_user "$user" tee "$folder/password" <"$dir/$name-admin.new.password" >/dev/null &&
        as_user "$user" "$(postgres_programs)/initdb" --pgdata "$folder/data" --username postgres \
            --pwfile "$folder/password" --auth scram-sha-256 --encoding UTF8 --locale C.UTF-8 --no-instructions &&
        as_user "$user" rm "$folder/password" &&
        postgres_conf | as_user "$user" tee -a "$folder/data/postgresql.conf" >/dev/null &&
        printf 'CREATE DATABASE shop;\n\n' | postgres_single postgres && postgres_set_role
}

postgres_conf()
{
    cat <<'CONF'

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

# Runs the SQL on stdin in the database named, as the superuser, while the server is down. Stops at the first error. The
# log gets no SQL, since that may contain a password.
postgres_single()
{
    as_user "$user" "$(postgres_programs)/postgres" --single -j -D "$folder/data" -c exit_on_error=on \
        -c log_error_verbosity=terse -c log_min_error_statement=panic "$1" >/dev/null
}

# Gives both roles their passwords, and `shop` its rights: those of shop.sql and what the load lab needs in addition.
postgres_set_role()
{
    {
        cat "${self%/*}/shop.sql"
        printf "ALTER ROLE shop PASSWORD '%s';\n\n" "$(password "$name")"
        printf "ALTER ROLE postgres PASSWORD '%s';\n\n" "$(password "$name-admin.new")"
        if (($(postgres_version) >= 15)); then
            printf 'GRANT SET ON PARAMETER deadlock_timeout, lc_messages TO shop;\n\n'
            printf 'GRANT pg_checkpoint TO shop;\n\n'
        fi
    } | postgres_single shop && mv "$dir/$name-admin.new.password" "$dir/$name-admin.password"
}

postgres_version()
{
    as_user "$user" cat "$folder/data/PG_VERSION"
}

postgres_command()
{
    # None of its processes is left, so these are stale, even where a zombie or a stranger has their number.
    as_user "$user" rm -f "$folder/data/postmaster.pid" "$folder/data/.s.PGSQL.$port"{,.lock}
    # The stack of an earlier version has no such password, and its `shop` is the superuser.
    if [[ ! -s $dir/$name-admin.password ]]; then
        { make_password "$name-admin.new" && postgres_set_role; } >>"$dir/$name.log" 2>&1 \
            || fail "$name: cannot create its role 'shop':"$'\n'"$(tail -n 5 "$dir/$name.log")"
    fi
    command=("$(postgres_programs)/postgres" -D "$folder/data" -p "$port"
        ${OVERSELL_MAX_CONNECTIONS:+-c "max_connections=$OVERSELL_MAX_CONNECTIONS"})
}

# This also shows that the address which `env` prints works. It goes by the environment: everybody can read arguments.
postgres_ready()
{
    local lines
    mapfile -t lines < <(as_user "$user" cat "$folder/data/postmaster.pid" 2>/dev/null)
    [[ ${lines[0]:-} == "$pid" && ${lines[7]:-} == ready* ]] || return 1
    PGCONNECT_TIMEOUT=3 PGHOST=127.0.0.1 PGPORT=$port PGUSER=shop PGPASSWORD=$(password) PGDATABASE=shop \
        "$(postgres_programs)/psql" -X -q -c 'SELECT' >/dev/null
}

postgres_url()
{
    printf 'postgresql://shop:%s@127.0.0.1:%s/shop\n' "$(password)" "$port"
}

# The superuser's address, for `env --admin`.
postgres_admin_url()
{
    printf 'postgresql://postgres:%s@127.0.0.1:%s/shop\n' "$(password "$name-admin")" "$port"
}
