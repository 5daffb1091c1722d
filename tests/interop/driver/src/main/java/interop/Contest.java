package interop;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.api.RedissonClient;

/**
 * Threads that go through one thing again and again until the time is over, and write down from when to when they were
 * inside: contest_test.go does the same, and judges what all have written.
 */
final class Contest {
    private final RedissonClient client;
    private final Command command;
    private long longest; // nanoseconds that anybody waited
    private long passes;

    Contest(RedissonClient client, Command command) {
        this.client = client;
        this.command = command;
    }

    Object run() throws Exception {
        int threads = command.count("threads");
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try (BufferedWriter file = Files.newBufferedWriter(Path.of(command.text("diary")))) {
            List<Callable<Void>> all = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                Diary diary = new Diary();
                Contender contender = Contender.of(client, command, diary);
                all.add(() -> contend(contender, diary, file));
            }
            for (Future<Void> each : pool.invokeAll(all)) {
                each.get();
            }
        } finally {
            pool.shutdown();
        }
        return Map.of("passes", passes, "longest", longest);
    }

    private Void contend(Contender contender, Diary diary, BufferedWriter file) throws Exception {
        long end = System.nanoTime() + command.number("millis") * 1_000_000L;
        while (System.nanoTime() < end && contender.pass()) {
            diary.passed();
        }
        finish(diary, file);
        return null;
    }

    private synchronized void finish(Diary diary, BufferedWriter file) throws IOException {
        diary.write(file);
        passes += diary.passes();
        longest = Math.max(longest, diary.longest());
    }
}
