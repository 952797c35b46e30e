// A small order service as many would write it: the JDK's HTTP server with a pool of threads, and JDBC with HikariCP's pool of ten
// connections.
//
//   DATABASE_URL=postgresql://… java -cp build/peers:/usr/share/java/* Shop statement|for-update PORT
//
// It sells from the tables of oversell (db/schema/001.sql), so that both can be compared: `make peers`.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Shop {
    static final String ITEM =
        " INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid,"
        + " created_by, updated_by)";
    static final String ONE_STATEMENT =
        "WITH taken AS (UPDATE product SET count = count - ?, version = version + 1, updated_by = 'java'"
        + " WHERE id = ? AND count >= ? RETURNING id, price),"
        + " o AS (INSERT INTO orders (amount, created_by, updated_by)"
        + " SELECT price * ?, 'java', 'java' FROM taken RETURNING id)"
        + ITEM + " SELECT o.id, taken.id, price, ?, 'java', 'java', pg_current_xact_id(), 'java', 'java' FROM o, taken"
        + " RETURNING order_id";
    static final String INSERT =
        "WITH o AS (INSERT INTO orders (amount, created_by, updated_by) VALUES (?::numeric * ?, 'java', 'java') RETURNING id)"
        + ITEM + " SELECT id, ?, ?, ?, 'java', 'java', pg_current_xact_id(), 'java', 'java' FROM o RETURNING order_id";

    static final Pattern PRODUCT = Pattern.compile("\"product_id\"\\s*:\\s*(\\d+)");
    static final Pattern QUANTITY = Pattern.compile("\"quantity\"\\s*:\\s*(\\d+)");

    /** Sells, and returns the order's id; 0: sold out. */
    interface Sale {
        long sell(Connection connection, long product, long quantity) throws SQLException;
    }

    static long id(PreparedStatement statement) throws SQLException {
        try (ResultSet rows = statement.executeQuery()) {
            return rows.next() ? rows.getLong(1) : 0;
        }
    }

    static long sellInOneStatement(Connection connection, long product, long quantity) throws SQLException {
        try (PreparedStatement sell = connection.prepareStatement(ONE_STATEMENT)) {
            sell.setLong(1, quantity);
            sell.setLong(2, product);
            sell.setLong(3, quantity);
            sell.setLong(4, quantity);
            sell.setLong(5, quantity);
            return id(sell);
        }
    }

    static long sellForUpdate(Connection connection, long product, long quantity) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement read = connection.prepareStatement("SELECT count, price FROM product WHERE id = ? FOR UPDATE");
             PreparedStatement write = connection.prepareStatement(
                 "UPDATE product SET count = ?, version = version + 1, updated_by = 'java' WHERE id = ?");
             PreparedStatement insert = connection.prepareStatement(INSERT)) {
            read.setLong(1, product);
            long count;
            BigDecimal price;
            try (ResultSet rows = read.executeQuery()) {
                if (!rows.next() || rows.getLong(1) < quantity) {
                    connection.rollback();
                    return 0;
                }
                count = rows.getLong(1);
                price = rows.getBigDecimal(2);
            }
            write.setLong(1, count - quantity);
            write.setLong(2, product);
            write.executeUpdate();
            insert.setBigDecimal(1, price);
            insert.setLong(2, quantity);
            insert.setLong(3, product);
            insert.setBigDecimal(4, price);
            insert.setLong(5, quantity);
            long order = id(insert);
            connection.commit();
            return order;
        } catch (SQLException error) {
            connection.rollback();
            throw error;
        } finally {
            connection.setAutoCommit(true);
        }
    }

    static long member(Pattern pattern, String body) {
        Matcher found = pattern.matcher(body);
        if (!found.find())
            throw new IllegalArgumentException("product_id or quantity is missing");
        return Long.parseLong(found.group(1));
    }

    static void answer(HttpExchange exchange, int status, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 2 || !arguments[0].matches("statement|for-update")) {
            System.err.println("usage: Shop statement|for-update PORT");
            System.exit(2);
        }
        Sale sale = arguments[0].equals("statement") ? Shop::sellInOneStatement : Shop::sellForUpdate;
        URI address = URI.create(System.getenv("DATABASE_URL"));
        String[] user = address.getUserInfo().split(":", 2);
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://" + address.getHost() + ":" + address.getPort() + address.getPath());
        config.setUsername(user[0]);
        config.setPassword(user.length > 1 ? user[1] : "");
        config.setMaximumPoolSize(10);
        HikariDataSource pool = new HikariDataSource(config);

        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1])), 1024);
        server.setExecutor(Executors.newFixedThreadPool(64));
        server.createContext("/orders", exchange -> {
            try {
                String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                long product = member(PRODUCT, body), quantity = member(QUANTITY, body), order;
                try (Connection connection = pool.getConnection()) {
                    order = sale.sell(connection, product, quantity);
                }
                if (order == 0)
                    answer(exchange, 409, "{\"error\":\"sold out\"}");
                else
                    answer(exchange, 201, "{\"id\":" + order + ",\"product_id\":" + product + ",\"quantity\":" + quantity + "}");
            } catch (SQLException | IllegalArgumentException error) {
                answer(exchange, 500, "{\"error\":\"the order failed\"}");
            }
        });
        server.start();
    }
}
