# shellcheck shell=bash disable=SC2034,SC2154  # read by stack/stack, and set there
# MariaDB, for SQL specifications only: the service does not use it. They connect as `shop`, who owns the database `shop` and may
# see who waits for whom (PROCESS). No other user can connect.

KINDS[mariadb]='mariadbd mysql 10 TERM'

mariadb_installed()
{
    if [[ ! -x $(mariadb_program) ]] || ! command -v mariadb-install-db >/dev/null; then not_installed mariadb-server; fi
}

# Debian has it in a folder that is not in the PATH of every user.
mariadb_program()
{
    command -v mariadbd || echo /usr/sbin/mariadbd
}

mariadb_prepare()
{
    make_password "$name" && mkdir "$folder/data" && { [[ $(id -u) -ne 0 ]] || chown "$user:" "$folder/data"; } &&
        TMPDIR=$folder/data as_user "$user" mariadb-install-db --no-defaults --datadir="$folder/data" --skip-test-db \
            --auth-root-authentication-method=socket >/dev/null && mariadb_users \
        | as_user "$user" "$(mariadb_program)" --no-defaults --datadir="$folder/data" --tmpdir="$folder/data" --bootstrap
}

mariadb_users()
{
    cat <<SQL
FLUSH PRIVILEGES;
CREATE DATABASE shop CHARACTER SET utf8mb4;
CREATE USER shop@'127.0.0.1' IDENTIFIED BY '$(password "$name")';
GRANT ALL ON shop.* TO shop@'127.0.0.1';
GRANT PROCESS ON *.* TO shop@'127.0.0.1';
SQL
}

mariadb_command()
{
    # The path of a socket may be short only, so it is one inside the data folder, where the server works.
    command=("$(mariadb_program)" --no-defaults --datadir="$folder/data" --tmpdir="$folder/data" --bind-address=127.0.0.1 --port="$port"
        --socket=mariadb.sock --pid-file=mariadb.pid --skip-name-resolve --innodb-buffer-pool-size=32M
        --performance-schema=OFF --log-warnings=1)
}

mariadb_ready()
{
    MYSQL_PWD=$(password) mariadb --no-defaults --protocol=tcp -h 127.0.0.1 -P "$port" -u shop -e 'SELECT 1' shop >/dev/null
}

mariadb_url()
{
    printf 'mariadb://shop:%s@127.0.0.1:%s/shop\n' "$(password)" "$port"
}
