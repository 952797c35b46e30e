// Connections for the exercises: one transaction, and Redis.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

final class Servers {
    interface Work<T> {
        T run(Statements sql) throws Exception;
    }

    /** Runs WORK. COMMIT at the end, ROLLBACK after an exception. */
    static <T> T transaction(Work<T> work) throws Exception {
        try (Connection connection = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
            connection.setAutoCommit(false);
            try {
                T result = work.run(new Statements(connection));
                connection.commit();
                return result;
            } catch (Exception error) {
                try {
                    connection.rollback();
                } catch (SQLException second) {
                    error.addSuppressed(second);
                }
                throw error;
            }
        }
    }

    /** The statements of a transaction. */
    static final class Statements {
        private final Connection connection;

        private Statements(Connection connection) {
            this.connection = connection;
        }

        private PreparedStatement prepare(String text, long... values) throws SQLException {
            PreparedStatement statement = connection.prepareStatement(text);
            for (int i = 0; i < values.length; i++) statement.setLong(i + 1, values[i]);
            return statement;
        }

        /** Returns the columns of the first row. */
        long[] row(String text, long... values) throws SQLException {
            try (PreparedStatement statement = prepare(text, values); ResultSet rows = statement.executeQuery()) {
                if (!rows.next()) throw new SQLException("no row: " + text);
                long[] columns = new long[rows.getMetaData().getColumnCount()];
                for (int i = 0; i < columns.length; i++) columns[i] = rows.getLong(i + 1);
                return columns;
            }
        }

        /** Returns the number of rows that the statement changed. */
        int execute(String text, long... values) throws SQLException {
            try (PreparedStatement statement = prepare(text, values)) {
                return statement.executeUpdate();
            }
        }
    }

    /** A connection to Redis, to be used in try ( ). */
    static final class Redis implements AutoCloseable {
        private final Socket socket;
        private final BufferedReader in;

        Redis() throws IOException {
            URI url = URI.create(System.getenv("REDIS_URL"));
            socket = new Socket(url.getHost(), url.getPort() < 0 ? 6379 : url.getPort());
            socket.setTcpNoDelay(true);
            in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            if (url.getUserInfo() != null) command("AUTH", url.getUserInfo().substring(url.getUserInfo().indexOf(':') + 1));
        }

        /** Returns the reply: a number, a text or null. Throws an exception for an error reply. The exercises get no other replies. */
        String command(String... words) throws IOException {
            StringBuilder text = new StringBuilder("*" + words.length + "\r\n");
            for (String word : words) {
                int length = word.getBytes(StandardCharsets.UTF_8).length;
                text.append("$").append(length).append("\r\n").append(word).append("\r\n");
            }
            socket.getOutputStream().write(text.toString().getBytes(StandardCharsets.UTF_8));
            String line = in.readLine();
            if (line == null) throw new IOException("Redis has closed the connection");
            if (line.startsWith("-")) throw new IOException("Redis: " + line.substring(1));
            if (line.startsWith("$")) return line.equals("$-1") ? null : in.readLine();
            return line.substring(1);
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
