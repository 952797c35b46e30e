# shellcheck shell=bash disable=SC2034,SC2154  # read by stack/stack, and set there
# Redis, in memory only: a restart forgets every lock, and locks must be shown to survive that or not. It asks for a
# password made for this stack.

KINDS[redis]='redis-server redis 5 TERM'

redis_installed()
{
    command -v redis-server >/dev/null || not_installed redis-server
}

redis_prepare()
{
    make_password && redis_conf | as_user "$user" tee "$folder/redis.conf" >/dev/null
}

redis_conf()
{
    cat <<CONF
bind 127.0.0.1
protected-mode yes
requirepass $(password)
save ""
appendonly no
maxmemory 64mb
# A lock is never thrown out to make room: a full server refuses instead.
maxmemory-policy noeviction
loglevel warning
CONF
}

redis_command()
{
    command=("$(command -v redis-server)" "$folder/redis.conf" --port "$port")
}

# No stranger on the same port would take the password.
redis_ready()
{
    [[ $(ask "$port" "AUTH $(password)"$'\r\nPING\r\nQUIT\r\n') == +OK*+PONG* ]]
}

redis_url()
{
    printf 'redis://default:%s@127.0.0.1:%s\n' "$(password)" "$port"
}
