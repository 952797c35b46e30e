# One image for each part of the lab, all from the Debian whose servers the tests run on: see docker-compose.yml.
#
#   docker build --target service .     or: lab, keys, proxy, postgres, redis, zookeeper, etcd
#
# Nothing runs as root. The user `oversell` has one number in all images, since only it can read the keys. What is kept lies below /var/lib/oversell; a part finds its secrets in /keys, a
# volume that `keys` fills at the first start.

FROM debian:12 AS base
ENV LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
COPY stack/container/install /usr/local/sbin/install-packages

# ---- the programs ---------------------------------------------------------------------------------

FROM base AS build
RUN install-packages gcc libc6-dev make pkg-config libmicrohttpd-dev libpq-dev libjansson-dev \
    libcurl4-openssl-dev libhiredis-dev libzookeeper-st-dev libqrencode-dev libmariadb-dev cmark python3
WORKDIR /src
COPY . .
RUN make -j"$(nproc)" programs && make install DESTDIR=/installed

FROM base AS programs
RUN install-packages libmicrohttpd12 libpq5 libjansson4 libcurl4 libhiredis0.14 libzookeeper-st2 libqrencode4 libmariadb3 curl \
    && useradd --system --uid 999 --user-group --no-create-home --home-dir / oversell
COPY --from=build /installed/usr/local /usr/local
COPY stack/container/with-keys /usr/local/bin/
# docker-compose.yml makes the root file system read-only; /tmp is the only folder that the programs can write to.
ENV TMPDIR=/tmp
USER oversell
ENTRYPOINT ["with-keys"]

FROM programs AS service
# What POST /runs drives the load with.
USER root
RUN install-packages wrk
USER oversell
EXPOSE 8080
HEALTHCHECK --interval=3s --timeout=5s --start-period=60s CMD ["curl", "-fsSo", "/dev/null", "http://127.0.0.1:8080/readyz"]
CMD ["order-service", "--listen", "0.0.0.0:8080"]

FROM programs AS lab
USER root
RUN install-packages wrk gnuplot-nox
USER oversell
WORKDIR /tmp
ENTRYPOINT ["with-keys", "loadtest"]
CMD ["--help"]

# ---- keys and proxy -------------------------------------------------------------------------------

FROM base AS keys
COPY stack/container/keys /usr/local/bin/
RUN useradd --system --uid 999 --user-group --no-create-home --home-dir / oversell && install -d -o oversell -g oversell /keys /keys-postgres /keys-redis
USER oversell
VOLUME /keys /keys-postgres /keys-redis
CMD ["keys"]

FROM base AS proxy
RUN install-packages nginx-light curl
COPY stack/container/nginx.conf /etc/oversell/nginx.conf
USER www-data
EXPOSE 8080
HEALTHCHECK --interval=3s --timeout=5s --start-period=30s CMD ["curl", "-fsSo", "/dev/null", "http://127.0.0.1:8080/healthz"]
STOPSIGNAL SIGQUIT
CMD ["nginx", "-c", "/etc/oversell/nginx.conf", "-e", "stderr"]

# ---- servers --------------------------------------------------------------------------------------

FROM base AS postgres
# The package would create a cluster, which the image does not use.
RUN install-packages postgresql-common \
    && sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
    && install-packages postgresql \
    && install -d -o postgres -g postgres -m 700 /var/lib/oversell
COPY stack/container/postgres.conf stack/shop.sql /etc/oversell/
COPY stack/container/postgres /usr/local/bin/start-postgres
USER postgres
VOLUME /var/lib/oversell
EXPOSE 5432
HEALTHCHECK --interval=2s --timeout=5s --start-period=60s CMD ["pg_isready", "-q", "-h", "127.0.0.1", "-U", "shop", "-d", "shop"]
STOPSIGNAL SIGINT
CMD ["start-postgres"]

FROM base AS redis
RUN install-packages redis-server
COPY stack/container/redis.conf /etc/oversell/redis.conf
COPY stack/container/redis /usr/local/bin/start-redis
USER redis
EXPOSE 6379
HEALTHCHECK --interval=2s --timeout=5s --start-period=30s CMD ["start-redis", "ping"]
CMD ["start-redis"]

FROM base AS zookeeper
# Not the package `zookeeper`, which brings a Java with windows and sounds: it would add a user and a service only.
RUN install-packages default-jre-headless libzookeeper-java \
    && useradd --system --user-group --no-create-home --home-dir / zookeeper \
    && install -d -o zookeeper -g zookeeper -m 700 /var/lib/oversell
COPY stack/container/zoo.cfg /etc/oversell/zoo.cfg
COPY stack/container/zookeeper /usr/local/bin/start-zookeeper
USER zookeeper
VOLUME /var/lib/oversell
EXPOSE 2181
HEALTHCHECK --interval=2s --timeout=5s --start-period=60s CMD ["start-zookeeper", "ping"]
CMD ["start-zookeeper"]

FROM base AS etcd
RUN install-packages etcd-server etcd-client && install -d -o etcd -g etcd -m 700 /var/lib/oversell
ENV ETCDCTL_API=3
USER etcd
VOLUME /var/lib/oversell
EXPOSE 2379
HEALTHCHECK --interval=2s --timeout=5s --start-period=30s CMD ["etcdctl", "endpoint", "health"]
# The settings are those of stack/etcd.sh.
CMD ["etcd", "--data-dir", "/var/lib/oversell/etcd", \
     "--listen-client-urls", "http://0.0.0.0:2379", "--advertise-client-urls", "http://etcd:2379", \
     "--listen-peer-urls", "http://127.0.0.1:2380", "--heartbeat-interval", "50", "--election-timeout", "500", \
     "--auto-compaction-mode", "periodic", "--auto-compaction-retention", "10s", "--snapshot-count", "10000", \
     "--logger", "zap", "--log-level", "error", "--log-outputs", "stderr"]
