package bench;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** One client holds many locks, which its watchdog renews. */
final class Held {
    private static final int WORKERS = 64;

    static Map<String, Number> run(Order order) throws Exception {
        RedissonClient client = order.open();
        RLock first = client.getLock("first");
        first.lock();
        first.unlock();
        long before = heap();
        List<List<RLock>> parts = acquire(client, order.many());
        long after = heap();
        Output.line("begin");
        Thread.sleep(order.lease());
        Output.line("end");
        Map<String, Number> figures = new HashMap<>();
        figures.put("locks", order.many());
        figures.put("bytes/lock", Math.max(0, after - before) / order.many());
        figures.put("lost", lost(parts));
        return figures;
    }

    /** Locks belong to threads. They are acquired under the ids of threads that do not exist, so that any can release. */
    private static List<List<RLock>> acquire(RedissonClient client, int many) throws Exception {
        List<List<RLock>> parts = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) {
            List<RLock> part = new ArrayList<>();
            int worker = i;
            parts.add(part);
            Thread thread = new Thread(() -> {
                for (int n = worker; n < many; n += WORKERS) {
                    RLock lock = client.getLock("held:" + n);
                    lock.lockAsync(id(worker)).toCompletableFuture().join();
                    part.add(lock);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return parts;
    }

    private static long id(int worker) {
        return 1_000_000L + worker;
    }

    /** Returns how many locks are not held any more. */
    private static long lost(List<List<RLock>> parts) {
        List<RFuture<Boolean>> held = new ArrayList<>();
        for (int i = 0; i < parts.size(); i++) {
            for (RLock lock : parts.get(i)) {
                held.add(lock.isHeldByThreadAsync(id(i)));
            }
        }
        return held.stream().filter(each -> !each.toCompletableFuture().join()).count();
    }

    /** Returns how many bytes of the heap are in use. */
    static long heap() {
        System.gc();
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private Held() {
    }
}
