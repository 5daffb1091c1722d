package bench;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RedissonClient;

/** Threads of several clients acquire and release one lock over and over. */
final class Contest {
    private static final String KEY = "contended";

    /** How long the last of many clients may wait after the measured time, in milliseconds. */
    private static final long MANY_LIMIT = 20_000;

    /** How many times as long as others a workload with many clients measures. */
    private static final int MANY_TIME = 6;

    private final Order order;
    private final Kind kind;
    private final Window window;
    private int clients;
    private final AtomicLong held = new AtomicLong();
    private final AtomicLong overlaps = new AtomicLong();
    private final AtomicLong last = new AtomicLong();
    private final AtomicLong handovers = new AtomicLong();
    private final AtomicLong changes = new AtomicLong();
    private final AtomicLong longest = new AtomicLong();

    Contest(Order order, Kind kind) {
        this.order = order;
        this.kind = kind;
        this.window = new Window(order);
    }

    Map<String, Number> run(int clients, int each) throws Exception {
        return run(order.open(clients), each, order.time(), Window.DRAIN_LIMIT);
    }

    /** Runs as many clients as the order says, with one thread each. */
    Map<String, Number> runMany() throws Exception {
        return run(order.openSmall(order.many()), 1, MANY_TIME * order.time(), MANY_LIMIT);
    }

    private Map<String, Number> run(RedissonClient[] opened, int each, long time, long limit) throws Exception {
        clients = opened.length;
        kind.prepare(opened[0], KEY);
        Times[] times = new Times[clients * each];
        for (int i = 0; i < times.length; i++) {
            int number = i;
            Times own = times[i] = new Times();
            window.start(() -> loop(number, opened[number % clients], own));
        }
        double seconds = window.run(time, limit);
        Map<String, Number> figures = figures(Times.sorted(times), seconds);
        figures.put("fairness", fairness(times));
        return figures;
    }

    private void loop(int number, RedissonClient client, Times times) throws Exception {
        while (!window.ended()) {
            long start = System.nanoTime();
            Kind.Held lock = kind.acquire(client, KEY);
            if (held.addAndGet(lock.part()) > kind.capacity) {
                overlaps.incrementAndGet();
            }
            note(number, System.nanoTime() - start, times);
            held.addAndGet(-lock.part());
            lock.release().run();
        }
    }

    private void note(int number, long wait, Times times) {
        long before = last.getAndSet(number);
        if (window.measuring()) {
            times.add(wait);
            if (before != number) {
                handovers.incrementAndGet();
            }
            if (before % clients != number % clients) {
                changes.incrementAndGet();
            }
        }
        if (!window.warming()) {
            longest.accumulateAndGet(wait, Math::max);
        }
    }

    /** Returns Jain's index of the numbers of grants of all threads. */
    private static double fairness(Times[] times) {
        double sum = 0;
        double squares = 0;
        for (Times each : times) {
            sum += each.count();
            squares += (double) each.count() * each.count();
        }
        return squares == 0 ? 0 : sum * sum / (times.length * squares);
    }

    private Map<String, Number> figures(long[] waits, double seconds) {
        Map<String, Number> figures = new HashMap<>();
        figures.put("grants", waits.length);
        figures.put("grants/s", waits.length / seconds);
        figures.put("handovers/s", handovers.get() / seconds);
        figures.put("client changes/s", changes.get() / seconds);
        figures.put("wait p50 ms", Times.quantile(waits, .5) / 1e6);
        figures.put("wait p99 ms", Times.quantile(waits, .99) / 1e6);
        figures.put("longest wait ms", longest.get() / 1e6);
        figures.put("overlaps", overlaps.get());
        return figures;
    }
}
