# shellcheck shell=bash disable=SC2034,SC2154  # read by stack/stack, and set there
# etcd: one server, or three that are a cluster. It asks for no password: everybody on this machine can use it.

KINDS[etcd]='etcd etcd 2 TERM'  # a leader would look for another for seconds, also while all are stopping

etcd_installed()
{
    command -v etcd >/dev/null || not_installed etcd-server
}

etcd_prepare()
{
    as_user "$user" mkdir -m 700 "$folder/data"
}

# Its own name in its cluster, which no other stack's servers have. $1: which member; nothing where it is alone.
etcd_name()
{
    echo "member${1:-}-$(fingerprint)"
}

etcd_peer_url()
{
    echo "http://$(peer_address):$((2380 + ${1:-0}))"
}

etcd_command()
{
    local each cluster='' tempo=()
    for each in $(members); do
        cluster+=${cluster:+,}$(etcd_name "$each")=$(etcd_peer_url "$each")
    done
    # Nobody's heart to wait for: so it starts sooner, and grants leases of 1 s (otherwise 2 s at least).
    [[ -n $cluster ]] || tempo=(--heartbeat-interval 50 --election-timeout 500)
    unset "${!ETCD@}"  # a caller's settings for another etcd
    # A lock in the queue format is a new key each time, and etcd walks over deleted ones until they are compacted away.
    command=("$(command -v etcd)" --data-dir "$folder/data" --name "$(etcd_name "$member")"
        --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port"
        --listen-peer-urls "$(etcd_peer_url "$member")" --initial-advertise-peer-urls "$(etcd_peer_url "$member")"
        --initial-cluster "${cluster:-$(etcd_name)=$(etcd_peer_url)}" --initial-cluster-token "$(fingerprint)"
        --auto-compaction-mode periodic --auto-compaction-retention 10s --snapshot-count 10000 "${tempo[@]}"
        --logger zap --log-level error --log-outputs stderr)
}

# Healthy once its cluster has a leader; and its name shows that it is this server and not a stranger on the same port.
etcd_ready()
{
    [[ $(ask "$port" $'GET /health HTTP/1.0\r\n\r\n') == *'"health":"true"'* ]] &&
        [[ $(ask "$port" $'POST /v3/cluster/member/list HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}') == *"\"$(etcd_name "$member")\""* ]]
}

etcd_url()
{
    echo "http://127.0.0.1:$port"
}
