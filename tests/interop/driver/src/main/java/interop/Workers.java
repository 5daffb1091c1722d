package interop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The named threads of this process, each of which does one thing after the other. */
final class Workers {
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

    void execute(String thread, Runnable task) {
        threads.computeIfAbsent(thread, Workers::start).execute(task);
    }

    private static ExecutorService start(String name) {
        return Executors.newSingleThreadExecutor(task -> new Thread(task, name));
    }
}
