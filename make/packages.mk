# The Debian packages that each target needs, and how they are installed.

# hiredis 0.14, which is Debian 12's, has no TLS: rediss:// is then an error that says so.
HIREDIS_SSL   = $(eval HIREDIS_SSL := $$(shell $(PKG_CONFIG) --exists hiredis_ssl openssl 2>/dev/null && \
                  echo hiredis_ssl openssl))$(HIREDIS_SSL)
# SQL specifications run on MariaDB where its client library is installed.
MARIADB       = $(eval MARIADB := $$(shell $(PKG_CONFIG) --exists libmariadb 2>/dev/null && echo libmariadb))$(MARIADB)
PKGS          = libmicrohttpd libpq jansson libcurl hiredis libqrencode $(HIREDIS_SSL) $(MARIADB)
OTHER_LIBS   := -l:libzookeeper_st.so.2 # which has no .pc file; so named, it is found beside either -dev package
# To build and run the programs: the demo needs no more. default-jre-headless and libzookeeper-java are the server of
# ZooKeeper; the package zookeeper would bring a whole desktop's Java. make/lesson-pages needs cmark and python3.
DEPS         := gcc libc6-dev pkg-config libmicrohttpd-dev libpq-dev libjansson-dev libcurl4-openssl-dev \
                libhiredis-dev libzookeeper-st-dev libqrencode-dev postgresql redis-server default-jre-headless libzookeeper-java \
                etcd-server wrk cmark python3
# For the tests, the benchmark and the measurements of the documents as well.
DEPS_TEST    := libcmocka-dev etcd-client gnuplot-nox curl python3-pytest python3-yaml python3-jsonschema \
                python3-redis python3-kazoo chromium chromium-driver firefox-esr python3-selenium binutils systemd clang \
                libclang-rt-dev python3-psycopg2 zbar-tools libmariadb-dev mariadb-server git
# The isolation tester, which a test compares with: the package is named after the version of PostgreSQL.
DEPS_TESTER  = $$(apt-cache depends postgresql 2>/dev/null | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$$/postgresql-server-dev-\1/p')
# Joins pictures to an animation, for `make pictures`.
DEPS_PICTURES := python3-pil
# What the services in samples/ are made of, for `make peers` and the tests of samples/own, with nodejs and node-pg (make/node-pg).
DEPS_PEERS   := default-jdk-headless libhikaricp-java libpostgresql-jdbc-java libjetty9-java libservlet-api-java libslf4j-java
# The frameworks of docs/frameworks, with DEPS_PEERS.
DEPS_FRAMEWORKS := python3-django python3-psycopg2 ruby ruby-activerecord ruby-pg ruby-webrick php-cli php-illuminate-database php-pgsql \
                libhibernate3-java libjavassist-java
DEPS_LINT    := clang-tidy clang-format shellcheck

# Asked once and only when something is compiled, since `make deps` may be what installs pkg-config.
ask_packages  = $(or $(shell $(PKG_CONFIG) $(1) $(PKGS) 2>/dev/null),$(error libraries are missing ($(PKGS)). Install them, on Debian with 'make deps'))
PKG_CFLAGS    = $(eval PKG_CFLAGS := $$(call ask_packages,--cflags))$(PKG_CFLAGS)
PKG_LIBS      = $(eval PKG_LIBS := $$(call ask_packages,--libs))$(PKG_LIBS)

# $(1): packages. Installs what is missing of them.
install_packages = @make/install-packages $(1)

deps: ## install the Debian packages that the programs need
	$(call install_packages,$(DEPS))

deps-test: /usr/sbin/nginx ## install these and the packages of the tests
	$(call install_packages,$(DEPS) $(DEPS_TEST) $(DEPS_TESTER))

# Debian starts nginx at once and at each boot, on port 80 of every address. The tests start their own.
/usr/sbin/nginx:
	$(call install_packages,nginx-light)
	@[ ! -x $@ ] || [ ! -d /run/systemd/system ] || $$([ "$$(id -u)" -eq 0 ] || echo sudo) systemctl disable --now nginx

deps-axe: ## install axe-core from npm, with which tests look at the pages' accessibility
	@make/axe-core $(BUILD)/axe

deps-lint: deps-test ## install these and the linters
	$(call install_packages,$(DEPS_LINT))

deps-peers: deps ## install these and what the services in samples/ use
	$(call install_packages,$(DEPS_PEERS))
	@make/node-pg $(BUILD)/peers/modules

deps-frameworks: deps-peers ## install these and the frameworks of docs/frameworks: Django, ActiveRecord, Eloquent, Hibernate
	$(call install_packages,$(DEPS_FRAMEWORKS))

deps-orms: ## install the ORMs of docs/frameworks/node.md from npm
	@make/node-orms $(BUILD)/node-orms
