package bench;

import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * Runs one workload: the arguments are its name, the address of the server, the warm-up, the measured time and the lease
 * in milliseconds, and how many locks are held, how many callers wait, or how many clients there are.
 *
 * <p>It writes lines to stdout: "begin" and "end" around the measured time, and then "result" with a JSON object of
 * figures, or "error" with the reason. It ends when its stdin ends, so that it does not outlive its parent.
 */
final class Main {
    public static void main(String[] args) {
        Thread watcher = new Thread(Main::endWithParent);
        watcher.setDaemon(true);
        watcher.start();
        try {
            Order order = Order.parse(args);
            Map<String, Number> figures = new TreeMap<>(run(order));
            Output.line("result " + json(figures));
        } catch (Throwable e) {
            Output.line("error " + e);
        }
        // Threads of Redisson, and callers that still wait, would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Number> run(Order order) throws Exception {
        return switch (order.workload()) {
            case "uncontended-1" -> Alone.run(order, 1);
            case "uncontended-64" -> Alone.run(order, 64);
            case "uncontended-256" -> Alone.run(order, 256);
            case "limiter-1" -> Alone.limit(order, 1);
            case "limiter-64" -> Alone.limit(order, 64);
            case "contended-1x16" -> new Contest(order, Kind.EXCLUSIVE).run(1, 16);
            case "contended-8x4" -> new Contest(order, Kind.EXCLUSIVE).run(8, 4);
            case "fair" -> new Contest(order, Kind.FAIR).run(8, 4);
            case "readwrite" -> new Contest(order, Kind.READ_WRITE).run(8, 4);
            case "semaphore" -> new Contest(order, Kind.SEMAPHORE).run(8, 4);
            case "clients-lock" -> new Contest(order, Kind.EXCLUSIVE).runMany();
            case "clients-semaphore" -> new Contest(order, Kind.SEMAPHORE).runMany();
            case "wakeup" -> Wakeup.run(order);
            case "held" -> Held.run(order);
            case "waiting" -> Waiting.run(order);
            default -> throw new IllegalArgumentException("no workload " + order.workload());
        };
    }

    private static String json(Map<String, Number> figures) {
        return figures.entrySet().stream()
                .map(each -> "\"" + each.getKey() + "\": " + each.getValue())
                .collect(Collectors.joining(", ", "{", "}"));
    }

    private static void endWithParent() {
        try {
            while (System.in.read() >= 0) {
                // nothing is sent
            }
        } catch (IOException e) {
            // as if it had ended
        }
        Runtime.getRuntime().halt(1);
    }

    private Main() {
    }
}
