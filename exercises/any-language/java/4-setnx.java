// Exercise 4: a lock that is a key in Redis. What happens to the key if its holder crashes? Which order may delete it?

class Order {
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
        String key = "lock:" + product;
        try (var redis = new Servers.Redis()) {
            while (redis.command("SETNX", key, "locked").equals("0")) Thread.sleep(10);
            redis.command("PEXPIRE", key, "2000");
            try {
                return readAndWrite(product, quantity);
            } finally {
                redis.command("DEL", key);
            }
        }
    }
}
