package bench;

import java.util.Map;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Threads of one client acquire and release, each a lock of its own. */
final class Alone {
    static Map<String, Number> run(Order order, int threads) throws Exception {
        RedissonClient client = order.open();
        Window window = new Window(order);
        Times[] times = new Times[threads];
        for (int i = 0; i < threads; i++) {
            Times own = times[i] = new Times();
            RLock lock = client.getLock("alone:" + i);
            window.start(() -> loop(window, lock, own));
        }
        double seconds = window.run(order.time());
        long[] all = Times.sorted(times);
        return Map.of("grants", all.length, "grants/s", all.length / seconds,
                "p50 \u00b5s", Times.quantile(all, .5) / 1e3, "p99 \u00b5s", Times.quantile(all, .99) / 1e3);
    }

    private static void loop(Window window, RLock lock, Times times) {
        while (!window.ended()) {
            boolean measured = window.measuring();
            long start = System.nanoTime();
            lock.lock();
            lock.unlock();
            if (measured && window.measuring()) {
                times.add(System.nanoTime() - start);
            }
        }
    }

    private Alone() {
    }
}
