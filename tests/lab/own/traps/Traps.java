// What Hibernate does with a pessimistic lock outside a transaction: a line for each method.
import javax.persistence.Entity;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.Id;
import javax.persistence.LockModeType;
import javax.persistence.Table;
import javax.persistence.TransactionRequiredException;

public class Traps {
    @Entity(name = "Item")
    @Table(name = "trap_item")
    public static class Item {
        @Id
        public Integer id;
    }

    static void show(String method, Runnable call) {
        try {
            call.run();
            System.out.println(method + " no exception");
        } catch (TransactionRequiredException error) {
            System.out.println(method + " TransactionRequiredException");
        }
    }

    public static void main(String[] arguments) {
        Thread.currentThread().setContextClassLoader(Traps.class.getClassLoader()); // `java Traps.java` compiles into memory
        EntityManagerFactory factory = new org.hibernate.ejb.Ejb3Configuration().addAnnotatedClass(Item.class)
            .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
            .setProperty("hibernate.connection.driver_class", "org.postgresql.Driver")
            .setProperty("hibernate.connection.url", System.getenv("JDBC_URL"))
            .setProperty("hibernate.hbm2ddl.auto", "create-drop")
            .buildEntityManagerFactory();
        EntityManager em = factory.createEntityManager();
        LockModeType mode = LockModeType.PESSIMISTIC_WRITE;
        em.getTransaction().begin();
        Item item = new Item();
        item.id = 1;
        em.persist(item);
        em.getTransaction().commit();
        show("find", () -> em.find(Item.class, 1, mode));
        show("refresh", () -> em.refresh(item, mode));
        show("lock", () -> em.lock(item, mode));
        show("query", () -> em.createQuery("SELECT i FROM Item i").setLockMode(mode).getResultList());
        em.close();
        factory.close();
    }
}
