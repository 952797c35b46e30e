# shellcheck shell=bash disable=SC2034,SC2154  # read by stack/stack, and set there
# ZooKeeper with a small heap and without its admin server: one server, or three that are an ensemble. It knows no
# password: everybody on this machine can use it.

KINDS[zookeeper]='java zookeeper 5 TERM'
readonly ZOOKEEPER_JARS=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar

zookeeper_installed()
{
    if ! command -v java >/dev/null || [[ ! -r ${ZOOKEEPER_JARS%%:*} ]]; then not_installed zookeeper; fi
}

zookeeper_prepare()
{
    as_user "$user" mkdir "$folder/data" || return 1
    [[ -z $member ]] || as_user "$user" tee "$folder/data/myid" <<<"$member" >/dev/null
}

# A session lives from 2 to 3000 ticks, as its client asks; one that is lost is noticed a tick later.
zookeeper_conf()
{
    local each
    cat <<CONF
dataDir=./data
clientPort=$port
clientPortAddress=127.0.0.1
maxClientCnxns=0
tickTime=200
maxSessionTimeout=600000
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr,mntr,conf
autopurge.purgeInterval=1
CONF
    [[ -n $member ]] || return 0
    echo initLimit=100
    echo syncLimit=50
    for each in $(members); do
        echo "server.$each=$(peer_address):$((2888 + each)):$((3888 + each))"
    done
}

zookeeper_command()
{
    zookeeper_conf | as_user "$user" tee "$folder/zoo.cfg" >/dev/null
    unset CLASSPATH JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS  # a caller's settings for other programs
    command=("$(command -v java)" -Xmx96m -XX:+UseSerialGC -XX:-UsePerfData -XX:+ExitOnOutOfMemoryError
        -Dzookeeper.jmx.log4j.disable=true -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$ZOOKEEPER_JARS"
        org.apache.zookeeper.server.quorum.QuorumPeerMain ./zoo.cfg)
}

# Answered only while it serves clients, as a member of an ensemble once that has a leader; and the folder shows that
# it is this server and not a stranger on the same port.
zookeeper_ready()
{
    [[ $(ask "$port" conf) == *"dataDir=$folder/"* ]]
}

zookeeper_url()
{
    echo "127.0.0.1:$port"
}
