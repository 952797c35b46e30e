// A small checkout in Java, with the usual drivers: com.sun.net.httpserver and JDBC. PROTECTION chooses how it protects the stock.
// `loadtest check` shows which of these ways oversell.
//
//     loadtest check samples/own/java/shop.json --env PROTECTION=for-update
//
// PROTECTION    naive: reads the stock, then writes it; for-update: the same with SELECT … FOR UPDATE;
//               statement: one statement does all; decrement: UPDATE … WHERE count >= quantity, then the order;
//               synchronized: naive inside a synchronized block; redis-lock: naive inside a lock in Redis;
//               redis-setnx: the same, but the release deletes the key of any owner;
//               redis-fenced: redis-lock, and the row refuses an order whose lock has ended (default: naive)
// POOL          connections to the database; 0: one for each request (default: 10)
// LEASE_MS      time to live of a lock in Redis, in ms (default: 10000)
// JDBC_URL, REDIS_URL, PORT   addresses; Redis is only needed for its locks
//
// POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.BlockingDeque;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class Shop {
    private static final String PROTECTION = setting("PROTECTION", "naive");
    private static final int POOL = Integer.parseInt(setting("POOL", "10"));
    private static final String LEASE_MS = setting("LEASE_MS", "10000");
    private static final long LOCK_WAIT_MS = 30_000;

    private interface Work {
        boolean run(Connection connection) throws SQLException;
    }

    private interface Sale {
        boolean sell(long product, int quantity) throws Exception;
    }

    private static String setting(String name, String otherwise) {
        return Optional.ofNullable(System.getenv(name)).orElse(otherwise);
    }

    // ---- connections ----------------------------------------------------------------------------

    private static final BlockingDeque<Optional<Connection>> idle = new LinkedBlockingDeque<>();

    private static Connection open() throws SQLException {
        Connection connection = DriverManager.getConnection(setting("JDBC_URL", ""));
        connection.setAutoCommit(false);
        return connection;
    }

    // Runs WORK in a transaction. A connection that fails is closed, which ends its transaction.
    private static boolean transaction(Work work) throws Exception {
        Connection connection = POOL > 0 ? idle.takeFirst().orElse(null) : null;
        boolean well = false;
        try {
            if (connection == null) connection = open();
            boolean result = work.run(connection);
            connection.commit();
            well = true;
            return result;
        } finally {
            if (connection != null && (!well || POOL == 0)) connection.close();
            if (POOL > 0) idle.addFirst(well ? Optional.of(connection) : Optional.empty());
        }
    }

    // ---- selling: each returns whether there were enough units ----------------------------------

    private static int execute(Connection connection, String sql, long... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) statement.setLong(i + 1, values[i]);
            return statement.executeUpdate();
        }
    }

    private static boolean insert(Connection connection, long product, int quantity) throws SQLException {
        return execute(connection, "INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity) == 1;
    }

    private static final String READ = "SELECT count FROM product WHERE id = ?";
    private static final String READ_FENCED = "UPDATE product SET fence = ? WHERE id = ? AND fence < ? RETURNING count";

    // READ has a number for the fence before that of the product, and after it, if FENCE is not 0. Then the statement that reads also keeps
    // the token, so no older one can write after it.
    private static boolean readAndWrite(long product, int quantity, String read, long fence) throws Exception {
        return transaction(connection -> {
            long count;
            try (PreparedStatement statement = connection.prepareStatement(read)) {
                long[] values = fence > 0 ? new long[] {fence, product, fence} : new long[] {product};
                for (int i = 0; i < values.length; i++) statement.setLong(i + 1, values[i]);
                ResultSet row = statement.executeQuery();
                if (!row.next()) throw new SQLException("no such product, or the lock has ended, and another order had it");
                count = row.getLong(1);
            }
            if (count < quantity) return false;
            execute(connection, "UPDATE product SET count = ? WHERE id = ?", count - quantity, product);
            return insert(connection, product, quantity);
        });
    }

    private static boolean naive(long product, int quantity) throws Exception {
        return readAndWrite(product, quantity, READ, 0);
    }

    private static boolean forUpdate(long product, int quantity) throws Exception {
        return readAndWrite(product, quantity, READ + " FOR UPDATE", 0);
    }

    private static boolean decrement(long product, int quantity) throws Exception {
        return transaction(connection ->
            execute(connection, "UPDATE product SET count = count - ? WHERE id = ? AND count >= ?", quantity, product, quantity) == 1
                && insert(connection, product, quantity));
    }

    private static boolean statement(long product, int quantity) throws Exception {
        return transaction(connection -> execute(connection,
            "WITH taken AS (UPDATE product SET count = count - ? WHERE id = ? AND count >= ? RETURNING id)"
                + " INSERT INTO order_item (product_id, quantity) SELECT id, ? FROM taken",
            quantity, product, quantity, quantity) == 1);
    }

    private static final Object monitor = new Object();

    private static boolean inMonitor(long product, int quantity) throws Exception {
        synchronized (monitor) {
            return naive(product, quantity);
        }
    }

    // ---- locks in Redis -------------------------------------------------------------------------

    private static final String LOCK =
        "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end";
    private static final String UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";

    // A connection for each request. It reads integers, short strings, null and errors: these commands have no other replies.
    private static final class Redis implements AutoCloseable {
        private final Socket socket;
        private final BufferedReader in;

        Redis() throws IOException {
            URI url = URI.create(setting("REDIS_URL", ""));
            socket = new Socket(url.getHost(), url.getPort() < 0 ? 6379 : url.getPort());
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(10_000);
            in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            String[] user = Optional.ofNullable(url.getUserInfo()).orElse("").split(":", 2);
            if (user.length == 2) command("AUTH", user[1]);
        }

        String command(String... words) throws IOException {
            StringBuilder text = new StringBuilder("*" + words.length + "\r\n");
            for (String word : words) text.append("$").append(word.getBytes(StandardCharsets.UTF_8).length).append("\r\n").append(word).append("\r\n");
            socket.getOutputStream().write(text.toString().getBytes(StandardCharsets.UTF_8));
            String line = in.readLine();
            if (line == null || line.startsWith("-")) throw new IOException("Redis: " + line);
            return line.equals("$-1") ? null : line.substring(1);
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    private static boolean inRedisLock(long product, int quantity) throws Exception {
        boolean fenced = PROTECTION.equals("redis-fenced");
        String key = "lock:" + product, token = UUID.randomUUID().toString(), grant;
        try (Redis redis = new Redis()) {
            long until = System.nanoTime() + LOCK_WAIT_MS * 1_000_000;
            // With a fence each holder gets a larger number than the one before.
            while ((grant = fenced ? redis.command("EVAL", LOCK, "2", key, "fence:" + key, token, LEASE_MS)
                                   : redis.command("SET", key, token, "NX", "PX", LEASE_MS)) == null) {
                if (System.nanoTime() > until) throw new IOException("the lock was not free in time");
                Thread.sleep(1);
            }
            try {
                return fenced ? readAndWrite(product, quantity, READ_FENCED, Long.parseLong(grant)) : naive(product, quantity);
            } finally {
                if (PROTECTION.equals("redis-setnx")) redis.command("DEL", key); // after the lease has ended, the lock of another request
                else redis.command("EVAL", UNLOCK, "1", key, token);
            }
        }
    }

    // ---- HTTP -----------------------------------------------------------------------------------

    private static final Map<String, Sale> PROTECTIONS = Map.of("naive", Shop::naive, "for-update", Shop::forUpdate, "statement", Shop::statement,
        "decrement", Shop::decrement, "synchronized", Shop::inMonitor, "redis-lock", Shop::inRedisLock, "redis-setnx", Shop::inRedisLock,
        "redis-fenced", Shop::inRedisLock);

    // A JSON parser is no part of the JDK.
    private static long number(String body, String name) {
        Matcher found = Pattern.compile("\"" + name + "\"\\s*:\\s*([1-9][0-9]{0,8})\\s*[,}]").matcher(body);
        return found.find() ? Long.parseLong(found.group(1)) : 0;
    }

    private static int order(HttpExchange exchange) throws IOException {
        String body = new String(exchange.getRequestBody().readNBytes(65536), StandardCharsets.UTF_8);
        long product = number(body, "product_id"), quantity = number(body, "quantity");
        if (!exchange.getRequestMethod().equals("POST")) return 404;
        if (product == 0 || quantity == 0) return 400;
        try {
            return PROTECTIONS.get(PROTECTION).sell(product, (int) quantity) ? 201 : 409;
        } catch (Exception error) {
            System.err.println("shop: " + error.getMessage());
            return 503;
        }
    }

    private static void answer(HttpExchange exchange, int status) throws IOException {
        exchange.getRequestBody().readAllBytes();
        exchange.sendResponseHeaders(status, -1);
        exchange.close();
    }

    public static void main(String[] arguments) throws Exception {
        if (!PROTECTIONS.containsKey(PROTECTION)) {
            System.err.println("shop: PROTECTION is \"" + PROTECTION + "\". Set it to one of: " + String.join(", ", PROTECTIONS.keySet()) + ".");
            System.exit(1);
        }
        for (int i = 0; i < POOL; i++) idle.add(Optional.empty());
        transaction(connection -> connection.isValid(10));
        int port = Integer.parseInt(setting("PORT", "8081"));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1024);
        server.createContext("/orders", exchange -> answer(exchange, order(exchange)));
        server.createContext("/healthz", exchange -> answer(exchange, 200));
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
