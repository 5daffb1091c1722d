package bench;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** One client holds locks for 5 to 105 ms, while threads of another wait. */
final class Wakeup {
    private static final int PAIRS = 8;

    static Map<String, Number> run(Order order) throws Exception {
        RedissonClient from = order.open();
        RedissonClient to = order.open();
        Window window = new Window(order);
        ExecutorService waiters = Executors.newFixedThreadPool(PAIRS);
        Times[] times = new Times[PAIRS];
        for (int i = 0; i < PAIRS; i++) {
            String key = "wakeup:" + i;
            Times own = times[i] = new Times();
            window.start(() -> {
                while (!window.ended()) {
                    long took = passOn(from.getLock(key), to.getLock(key), waiters);
                    if (window.measuring()) {
                        own.add(took);
                    }
                }
            });
        }
        window.run(4 * order.time());
        long[] all = Times.sorted(times);
        return Map.of("p50 \u00b5s", Times.quantile(all, .5) / 1e3, "p99 \u00b5s", Times.quantile(all, .99) / 1e3,
                "samples", all.length);
    }

    /** Returns how long after the release by one client the other one had the lock. */
    private static long passOn(RLock from, RLock to, ExecutorService waiters) throws Exception {
        from.lock();
        CompletableFuture<Long> granted = new CompletableFuture<>();
        CompletableFuture<Void> done = CompletableFuture.runAsync(() -> {
            to.lock();
            granted.complete(System.nanoTime());
            to.unlock();
        }, waiters);
        Thread.sleep(ThreadLocalRandom.current().nextInt(5, 105));
        long start = System.nanoTime();
        from.unlock();
        done.get();
        return granted.get() - start;
    }

    private Wakeup() {
    }
}
