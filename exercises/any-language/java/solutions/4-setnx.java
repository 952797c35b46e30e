// One command sets the key, its owner and its expiry. A script compares the owner and deletes the key, on every path.

import java.util.UUID;

class Order {
    private static final String RELEASE =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

    private static boolean readAndWrite(long product, int quantity) throws Exception {
        return Servers.transaction(sql -> {
            long count = sql.row("SELECT count FROM product WHERE id = ?", product)[0];
            if (count < quantity) return false;
            sql.execute("UPDATE product SET count = ? WHERE id = ?", count - quantity, product);
            sql.execute("INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity);
            return true;
        });
    }

    static boolean order(long product, int quantity) throws Exception {
        String key = "lock:" + product, owner = UUID.randomUUID().toString();
        try (var redis = new Servers.Redis()) {
            while (redis.command("SET", key, owner, "NX", "PX", "2000") == null) Thread.sleep(10);
            try {
                return readAndWrite(product, quantity);
            } finally {
                redis.command("EVAL", RELEASE, "1", key, owner);
            }
        }
    }
}
