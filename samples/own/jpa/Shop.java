// A small checkout with JPA's EntityManager and Hibernate, in one file. It takes the stock by the idiom that PROTECTION names, so that
// `loadtest explore samples/own/jpa/shop.json` can show which idioms oversell. docs/frameworks/spring.md explains them.
//
// POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.persistence.Entity;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.LockModeType;
import javax.persistence.OptimisticLockException;
import javax.persistence.RollbackException;
import javax.persistence.Table;
import javax.persistence.Version;

public class Shop {
    @Entity(name = "Product")
    @Table(name = "product")
    public static class Product {
        @Id
        public Integer id;
        public int count;
    }

    /** The same table with optimistic locking. */
    @Entity(name = "VersionedProduct")
    @Table(name = "product")
    public static class VersionedProduct {
        @Id
        public Integer id;
        public int count;
        @Version
        public int version;
    }

    @Entity(name = "OrderItem")
    @Table(name = "order_item")
    public static class OrderItem {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        public Long id;
        public int product_id;
        public int quantity;

        public OrderItem() {}

        public OrderItem(int product, int quantity) {
            this.product_id = product;
            this.quantity = quantity;
        }
    }

    interface Idiom {
        boolean order(EntityManager em, int id, int quantity);
    }

    // ---- idioms that oversell -----------------------------------------------------------------------

    static boolean naive(EntityManager em, int id, int quantity) {
        Product product = em.find(Product.class, id);
        if (product.count < quantity) return false;
        product.count -= quantity;
        em.persist(new OrderItem(id, quantity));
        return true;
    }

    static boolean lateLock(EntityManager em, int id, int quantity) {
        Product product = em.find(Product.class, id);
        em.lock(product, LockModeType.PESSIMISTIC_WRITE);
        if (product.count < quantity) return false;
        product.count -= quantity;
        em.persist(new OrderItem(id, quantity));
        return true;
    }

    // ---- idioms that repair it ----------------------------------------------------------------------

    static boolean lock(EntityManager em, int id, int quantity) {
        Product product = em.find(Product.class, id, LockModeType.PESSIMISTIC_WRITE);
        if (product.count < quantity) return false;
        product.count -= quantity;
        em.persist(new OrderItem(id, quantity));
        return true;
    }

    static boolean refresh(EntityManager em, int id, int quantity) {
        Product product = em.find(Product.class, id);
        em.refresh(product, LockModeType.PESSIMISTIC_WRITE);
        if (product.count < quantity) return false;
        product.count -= quantity;
        em.persist(new OrderItem(id, quantity));
        return true;
    }

    static boolean condition(EntityManager em, int id, int quantity) {
        int taken = em.createQuery("UPDATE Product p SET p.count = p.count - :quantity WHERE p.id = :id AND p.count >= :quantity")
            .setParameter("id", id).setParameter("quantity", quantity).executeUpdate();
        if (taken == 0) return false;
        em.persist(new OrderItem(id, quantity));
        return true;
    }

    static boolean version(EntityManager em, int id, int quantity) {
        VersionedProduct product = em.find(VersionedProduct.class, id);
        if (product.count < quantity) return false;
        product.count -= quantity;
        em.persist(new OrderItem(id, quantity));
        return true;
    }

    static final Map<String, Idiom> IDIOMS = Map.of("naive", Shop::naive, "late-lock", Shop::lateLock, "lock", Shop::lock,
        "refresh", Shop::refresh, "condition", Shop::condition, "version", Shop::version);
    static EntityManagerFactory factory;

    /** What @Transactional does: begin, the method, COMMIT or ROLLBACK. Other requests' writes show as OptimisticLockException at COMMIT. */
    static boolean transaction(Function<EntityManager, Boolean> work) {
        for (int tries = 1;; tries++) {
            EntityManager em = factory.createEntityManager();
            try {
                em.getTransaction().begin();
                boolean sold = work.apply(em);
                em.getTransaction().commit();
                return sold;
            } catch (RollbackException error) {
                if (!(error.getCause() instanceof OptimisticLockException) || tries == 10) throw error;
            } finally {
                if (em.getTransaction().isActive()) em.getTransaction().rollback();
                em.close();
            }
        }
    }

    // ---- HTTP ---------------------------------------------------------------------------------------

    static void answer(HttpExchange exchange, int status) throws IOException {
        try (exchange) {
            exchange.sendResponseHeaders(status, 2);
            exchange.getResponseBody().write("{}".getBytes(StandardCharsets.UTF_8));
        }
    }

    static int number(String text, String name) {
        Matcher found = Pattern.compile("\"" + name + "\" *: *([0-9]{1,9})").matcher(text);
        if (!found.find()) throw new IllegalArgumentException(name + " must be a positive integer");
        return Integer.parseInt(found.group(1));
    }

    static void order(HttpExchange exchange, Idiom idiom) throws IOException {
        String text = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        boolean sold;
        try {
            int id = number(text, "product_id"), quantity = number(text, "quantity");
            sold = transaction(em -> idiom.order(em, id, quantity));
        } catch (RuntimeException error) {
            System.err.println("shop: " + error);
            answer(exchange, 503);
            return;
        }
        answer(exchange, sold ? 201 : 409);
    }

    public static void main(String[] arguments) throws IOException {
        String name = System.getenv().getOrDefault("PROTECTION", "naive");
        Idiom idiom = IDIOMS.get(name);
        if (idiom == null) {
            System.err.println("shop: PROTECTION is '" + name + "'. Set it to one of: " + String.join(", ", IDIOMS.keySet()) + ".");
            System.exit(1);
        }
        Thread.currentThread().setContextClassLoader(Shop.class.getClassLoader()); // `java Shop.java` compiles into memory
        factory = new org.hibernate.ejb.Ejb3Configuration()
            .addAnnotatedClass(Product.class).addAnnotatedClass(VersionedProduct.class).addAnnotatedClass(OrderItem.class)
            .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
            .setProperty("hibernate.connection.driver_class", "org.postgresql.Driver")
            .setProperty("hibernate.connection.url", System.getenv("JDBC_URL"))
            .buildEntityManagerFactory();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 1024);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/healthz", exchange -> answer(exchange, 200));
        server.createContext("/orders", exchange -> order(exchange, idiom));
        server.start();
    }
}
