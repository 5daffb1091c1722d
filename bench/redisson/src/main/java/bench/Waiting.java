package bench;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Many callers of one client wait, without threads of their own, for a lock that another client holds. */
final class Waiting {
    private static final String KEY = "waiting";

    static Map<String, Number> run(Order order) throws Exception {
        RLock holder = order.open().getLock(KEY);
        RedissonClient client = order.open();
        holder.lock();
        AtomicInteger inside = new AtomicInteger(1);
        AtomicInteger overlaps = new AtomicInteger();
        CompletableFuture<Long> granted = new CompletableFuture<>();
        long before = Held.heap();
        for (int i = 0; i < order.many(); i++) {
            client.getLock(KEY).lockAsync(1_000_000L + i).whenComplete((nothing, failure) -> {
                if (failure != null) {
                    granted.completeExceptionally(failure);
                    return;
                }
                if (inside.incrementAndGet() > 1) {
                    overlaps.incrementAndGet();
                }
                granted.complete(System.nanoTime());
            });
        }
        long settle = Math.max(4 * order.time(), 1000);
        Thread.sleep(settle);
        long after = Held.heap();
        Output.line("begin");
        Thread.sleep(settle);
        Output.line("end");
        inside.decrementAndGet();
        long start = System.nanoTime();
        holder.unlock();
        long at = granted.get(15, TimeUnit.SECONDS);
        Map<String, Number> figures = new HashMap<>();
        figures.put("waiters", order.many());
        figures.put("bytes/waiter", Math.max(0, after - before) / order.many());
        figures.put("next grant ms", (at - start) / 1e6);
        figures.put("overlaps", overlaps.get());
        return figures;
    }

    private Waiting() {
    }
}
