import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Map;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.server.handler.StatisticsHandler;
import org.eclipse.jetty.util.ajax.JSON;

/**
 * A small order service as many would write it in Java: Jetty with its own pool of threads, and JDBC with HikariCP's pool of ten
 * connections. It sells from oversell's tables (db/schema/001.sql).
 *
 * <pre>    DATABASE_URL=postgresql://… PORT=8081 SALE=for-update java -jar build/peers/shop.jar</pre>
 *
 * DATABASE_URL, PORT, SALE and POOL mean the same as in samples/node/shop.js, and so do the answers.
 */
public class Shop extends AbstractHandler {
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
    static final String READ = "SELECT count, price FROM product WHERE id = ? FOR UPDATE";
    static final String WRITE = "UPDATE product SET count = ?, version = version + 1, updated_by = 'java' WHERE id = ?";
    static final String INSERT =
        "WITH o AS (INSERT INTO orders (amount, created_by, updated_by) VALUES (?::numeric * ?, 'java', 'java') RETURNING id)"
        + ITEM + " SELECT id, ?, ?, ?, 'java', 'java', pg_current_xact_id(), 'java', 'java' FROM o RETURNING order_id";

    /** Returns the order's id, or 0 if there are not enough units. */
    interface Sale {
        long sell(Connection connection, long product, long quantity) throws SQLException;
    }

    static long idOf(PreparedStatement statement) throws SQLException {
        try (ResultSet rows = statement.executeQuery()) {
            return rows.next() ? rows.getLong(1) : 0;
        }
    }

    // The driver keeps a statement prepared after its fifth use.
    static long sellInOneStatement(Connection connection, long product, long quantity) throws SQLException {
        try (PreparedStatement sell = connection.prepareStatement(ONE_STATEMENT)) {
            sell.setLong(1, quantity);
            sell.setLong(2, product);
            sell.setLong(3, quantity);
            sell.setLong(4, quantity);
            sell.setLong(5, quantity);
            return idOf(sell);
        }
    }

    static long sellForUpdate(Connection connection, long product, long quantity) throws SQLException {
        connection.setAutoCommit(false); // the pool rolls back what is left open, and sets this again
        try (PreparedStatement read = connection.prepareStatement(READ);
             PreparedStatement write = connection.prepareStatement(WRITE);
             PreparedStatement insert = connection.prepareStatement(INSERT)) {
            read.setLong(1, product);
            long count;
            BigDecimal price;
            try (ResultSet rows = read.executeQuery()) {
                if (!rows.next() || rows.getLong(1) < quantity)
                    return 0;
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
            long order = idOf(insert);
            connection.commit();
            return order;
        }
    }

    private final HikariDataSource pool;
    private final Sale sale;

    Shop(HikariDataSource pool, Sale sale) {
        this.pool = pool;
        this.sale = sale;
    }

    static void answer(HttpServletResponse response, int status, Map<String, Object> body) throws IOException {
        response.setStatus(status);
        response.setContentType("application/json");
        response.getWriter().print(JSON.toString(body));
    }

    @Override
    public void handle(String target, Request base, HttpServletRequest request, HttpServletResponse response) throws IOException {
        base.setHandled(true);
        if (!target.equals("/orders") || !request.getMethod().equals("POST")) {
            answer(response, 404, Map.of("error", "use POST /orders"));
            return;
        }
        long product = 0, quantity = 0;
        try {
            Map<?, ?> order = (Map<?, ?>)JSON.parse(request.getReader());
            product = (Long)order.get("product_id");
            quantity = (Long)order.get("quantity");
        } catch (RuntimeException error) {
            // answered below
        }
        if (product <= 0 || quantity <= 0) {
            answer(response, 400, Map.of("error", "product_id and quantity must be positive integers"));
            return;
        }
        try (Connection connection = pool.getConnection()) {
            long id = sale.sell(connection, product, quantity);
            if (id == 0)
                answer(response, 409, Map.of("error", "sold out"));
            else
                answer(response, 201, Map.of("id", id, "product_id", product, "quantity", quantity));
        } catch (SQLException error) {
            System.err.println("shop: " + error.getMessage());
            answer(response, 500, Map.of("error", "the order failed"));
        }
    }

    static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    static HikariDataSource open(String url, int connections) {
        URI address = URI.create(url);
        String[] user = address.getUserInfo().split(":", 2);
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://" + address.getHost() + ":" + address.getPort() + address.getPath());
        config.setUsername(user[0]);
        config.setPassword(user.length > 1 ? user[1] : "");
        config.setMaximumPoolSize(connections);
        return new HikariDataSource(config);
    }

    static void fail(String message) {
        System.err.println("shop: " + message);
        System.exit(1);
    }

    public static void main(String[] arguments) throws Exception {
        String sale = setting("SALE", "statement"), url = setting("DATABASE_URL", ""), port = setting("PORT", "8081");
        if (!sale.matches("statement|for-update"))
            fail("SALE is \"" + sale + "\". Set it to statement or for-update.");
        if (url.isEmpty())
            fail("DATABASE_URL is missing. Set it to the address of a database with oversell's tables.");
        HikariDataSource pool = null;
        try {
            pool = open(url, Integer.parseInt(setting("POOL", "10")));
        } catch (RuntimeException error) {
            fail("cannot use the database. Check DATABASE_URL. The driver says: " + error.getMessage());
        }
        HikariDataSource opened = pool;

        Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(port)));
        StatisticsHandler counted = new StatisticsHandler(); // so that a stop waits for the orders in progress
        counted.setHandler(new Shop(pool, sale.equals("statement") ? Shop::sellInOneStatement : Shop::sellForUpdate));
        server.setHandler(counted);
        server.setStopTimeout(10_000);
        try {
            server.start();
        } catch (IOException error) {
            fail("cannot listen on port " + port + ". Choose another PORT. Jetty says: " + error.getMessage());
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                server.stop();
            } catch (Exception error) {
                System.err.println("shop: " + error);
            }
            opened.close();
        }));
        System.out.println("shop: listening on port " + ((ServerConnector)server.getConnectors()[0]).getLocalPort());
        server.join();
    }
}
