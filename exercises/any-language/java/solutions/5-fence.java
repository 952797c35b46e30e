// The order stores its token in the row before it reads, and writes only if the row still has that token.

import java.util.UUID;

class Order {
    private static final String GRANT =
        "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 2000) then return redis.call('INCR', KEYS[2]) end return 0";
    private static final String RELEASE =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

    private static final class LeaseLost extends Exception {}

    private static boolean orderWith(long token, long product, int quantity) throws Exception {
        // commits, so that others see the token before this order reads
        Servers.transaction(sql -> {
            int rows = sql.execute("UPDATE product SET fence = ? WHERE id = ? AND fence < ?", token, product, token);
            if (rows == 0) throw new LeaseLost();
            return rows;
        });
        return Servers.transaction(sql -> {
            long count = sql.row("SELECT count FROM product WHERE id = ?", product)[0];
            if (count < quantity) return false;
            int rows = sql.execute("UPDATE product SET count = ? WHERE id = ? AND fence = ?", count - quantity, product, token);
            if (rows == 0) throw new LeaseLost();
            sql.execute("INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity);
            return true;
        });
    }

    static boolean order(long product, int quantity) throws Exception {
        String key = "lock:" + product, owner = UUID.randomUUID().toString(), token;
        try (var redis = new Servers.Redis()) {
            while ((token = redis.command("EVAL", GRANT, "2", key, "token:" + product, owner)).equals("0")) Thread.sleep(10);
            try {
                return orderWith(Long.parseLong(token), product, quantity);
            } finally {
                redis.command("EVAL", RELEASE, "1", key, owner);
            }
        }
    }
}
