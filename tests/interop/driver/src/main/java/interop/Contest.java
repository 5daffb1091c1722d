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
    private final List<Long> waits = new ArrayList<>(); // nanoseconds
    private final List<Long> shares = new ArrayList<>(); // passes in time, of each thread
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
        return Map.of("passes", passes, "shares", shares, "waits", waits);
    }

    private Void contend(Contender contender, Diary diary, BufferedWriter file) throws Exception {
        Clock.restUntil(command.number("from", 0));
        long end = Clock.nanos() + command.number("millis") * 1_000_000L;
        while (Clock.nanos() < end && contender.pass()) {
            diary.passed(Clock.nanos() < end);
        }
        finish(diary, file);
        return null;
    }

    private synchronized void finish(Diary diary, BufferedWriter file) throws IOException {
        diary.write(file);
        passes += diary.passes();
        shares.add(diary.inTime());
        waits.addAll(diary.waits());
    }
}
