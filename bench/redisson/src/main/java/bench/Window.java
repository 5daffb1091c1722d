package bench;

import java.util.ArrayList;
import java.util.List;

/** Threads that run through a warm-up and a measured time. */
final class Window {
    /** What a thread does until the window has ended. */
    interface Body {
        void run() throws Exception;
    }

    static final long DRAIN_LIMIT = 10_000;

    private enum Phase { WARMING, MEASURING, ENDED }

    private final Order order;
    private final List<Thread> threads = new ArrayList<>();
    private volatile Phase phase = Phase.WARMING;
    private volatile Throwable failed;

    Window(Order order) {
        this.order = order;
    }

    boolean measuring() {
        return phase == Phase.MEASURING;
    }

    boolean warming() {
        return phase == Phase.WARMING;
    }

    boolean ended() {
        return phase == Phase.ENDED;
    }

    void start(Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Throwable e) {
                failed = e;
            }
        });
        threads.add(thread);
        thread.start();
    }

    /** Lets the time pass, waits for the threads, and returns the measured time in seconds. */
    double run(long time) throws Exception {
        return run(time, DRAIN_LIMIT);
    }

    /** As run, and the threads may take until the limit to end after the measured time. */
    double run(long time, long limit) throws Exception {
        Thread.sleep(order.warmup());
        Output.line("begin");
        long start = System.nanoTime();
        phase = Phase.MEASURING;
        Thread.sleep(time);
        phase = Phase.ENDED;
        double seconds = (System.nanoTime() - start) / 1e9;
        Output.line("end");
        drain(limit);
        return seconds;
    }

    private void drain(long limit) throws Exception {
        long end = System.currentTimeMillis() + limit;
        for (Thread thread : threads) {
            thread.join(Math.max(1, end - System.currentTimeMillis()));
            if (thread.isAlive() && failed == null) {
                throw new IllegalStateException("a thread did not get the lock within " + limit + " ms of the end");
            }
        }
        if (failed != null) {
            throw new IllegalStateException(failed);
        }
    }
}
