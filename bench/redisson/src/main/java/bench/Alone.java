package bench;

import java.time.Duration;
import java.util.Map;
import java.util.function.IntFunction;
import org.redisson.api.RLock;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;

/** Threads of one client acquire and release, each a lock of its own, or ask a rate limiter. */
final class Alone {
    /** So high that no request is refused. */
    private static final int RATE = 1_000_000_000;

    static Map<String, Number> run(Order order, int threads) throws Exception {
        RedissonClient client = order.open();
        return run(order, threads, i -> {
            RLock lock = client.getLock("alone:" + i);
            return () -> {
                lock.lock();
                lock.unlock();
            };
        });
    }

    /** The same with a rate limiter instead of a lock. */
    static Map<String, Number> limit(Order order, int threads) throws Exception {
        RedissonClient client = order.open();
        return run(order, threads, i -> {
            RRateLimiter limiter = client.getRateLimiter("alone:" + i);
            limiter.trySetRate(RateType.OVERALL, RATE, Duration.ofSeconds(1));
            return limiter::tryAcquire;
        });
    }

    private static Map<String, Number> run(Order order, int threads, IntFunction<Runnable> uses) throws Exception {
        Window window = new Window(order);
        Times[] times = new Times[threads];
        for (int i = 0; i < threads; i++) {
            Times own = times[i] = new Times();
            Runnable use = uses.apply(i);
            window.start(() -> loop(window, use, own));
        }
        double seconds = window.run(order.time());
        long[] all = Times.sorted(times);
        return Map.of("grants", all.length, "grants/s", all.length / seconds,
                "p50 \u00b5s", Times.quantile(all, .5) / 1e3, "p99 \u00b5s", Times.quantile(all, .99) / 1e3);
    }

    private static void loop(Window window, Runnable use, Times times) {
        while (!window.ended()) {
            boolean measured = window.measuring();
            long start = System.nanoTime();
            use.run();
            if (measured && window.measuring()) {
                times.add(System.nanoTime() - start);
            }
        }
    }

    private Alone() {
    }
}
