// The HTTP server around an exercise: POST /orders calls order(product, quantity) of the file that ORDER names, and answers 201 if it
// returns true, 409 if it returns false.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

public final class Shop {
    private static Method order;

    // ---- the exercise ---------------------------------------------------------------------------

    /** Keeps the compiled classes in memory, so no files remain when the process is killed. */
    private static final class Classes extends ForwardingJavaFileManager<StandardJavaFileManager> {
        private final Map<String, ByteArrayOutputStream> code = new HashMap<>();

        Classes(StandardJavaFileManager files) {
            super(files);
        }

        @Override
        public JavaFileObject getJavaFileForOutput(Location location, String name, JavaFileObject.Kind kind, FileObject source) {
            return new SimpleJavaFileObject(URI.create("memory:///" + name), kind) {
                @Override
                public OutputStream openOutputStream() {
                    return code.computeIfAbsent(name, unused -> new ByteArrayOutputStream());
                }
            };
        }

        ClassLoader loader() {
            return new ClassLoader() { // not a child of this class's loader, which may compile Servers itself
                @Override
                protected Class<?> findClass(String name) throws ClassNotFoundException {
                    if (!code.containsKey(name)) throw new ClassNotFoundException(name);
                    byte[] bytes = code.get(name).toByteArray();
                    return defineClass(name, bytes, 0, bytes.length);
                }
            };
        }
    }

    /** Compiles FILE together with Servers.java, and returns its method order. */
    private static Method load(String file) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager files = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8);
        Classes classes = new Classes(files);
        if (!compiler.getTask(null, classes, null, null, null, files.getJavaFileObjects(file, "Servers.java")).call())
            fail(file + " does not compile. Correct the errors above, then run the judge again.");
        try {
            Method method = classes.loader().loadClass("Order").getDeclaredMethod("order", long.class, int.class);
            if (!Modifier.isStatic(method.getModifiers()) || method.getReturnType() != boolean.class) throw new NoSuchMethodException();
            method.setAccessible(true);
            return method;
        } catch (ReflectiveOperationException error) {
            fail(file + " has no class Order with a method static boolean order(long product, int quantity). Add it, then run the judge again.");
            return null;
        }
    }

    private static void fail(String sentence) {
        System.err.println("shop: " + sentence);
        System.exit(1);
    }

    // ---- HTTP -----------------------------------------------------------------------------------

    // The JDK has no JSON parser.
    private static long number(String body, String name) {
        Matcher found = Pattern.compile("\"" + name + "\"\\s*:\\s*([0-9]+)").matcher(body);
        return found.find() ? Long.parseLong(found.group(1)) : 0;
    }

    private static int post(HttpExchange exchange) {
        try {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            boolean sold = (boolean) order.invoke(null, number(body, "product_id"), (int) number(body, "quantity"));
            return sold ? 201 : 409;
        } catch (Exception error) { // any exception of an exercise
            System.err.println("shop: " + (error.getCause() == null ? error : error.getCause()));
            return 503;
        }
    }

    private static void answer(HttpExchange exchange, int status) throws IOException {
        exchange.sendResponseHeaders(status, -1);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        try {
            DriverManager.getDriver(System.getenv("JDBC_URL"));
        } catch (SQLException error) {
            fail("there is no JDBC driver in /usr/share/java/postgresql.jar. Install it with make deps-peers.");
        }
        order = load(System.getenv("ORDER"));
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1024);
        server.createContext("/", exchange -> answer(exchange, exchange.getRequestMethod().equals("POST") ? post(exchange) : 200));
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
