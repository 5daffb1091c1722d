package interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RedissonClient;

/** Rounds in which nobody passes the latch before all have come to it. */
final class Meeting implements Contender {
    private static final long MORE = 1;
    private static final long ENOUGH = 2;
    private final RedissonClient client;
    private final String name;
    private final int parties;
    private final long until; // nanoseconds of the clock
    private int round;

    Meeting(RedissonClient client, String name, int parties, long until) {
        this.client = client;
        this.name = name;
        this.parties = parties;
        this.until = until;
    }

    @Override
    public boolean pass() throws InterruptedException {
        String latchName = name + ":" + ++round;
        if (!another(latchName)) {
            return false;
        }
        RAtomicLong present = client.getAtomicLong("interop-present:{" + latchName + "}");
        RCountDownLatch latch = client.getCountDownLatch(latchName);
        latch.trySetCount(parties);
        present.incrementAndGet();
        latch.countDown();
        if (!latch.await(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException(latchName + " stays closed at " + latch.getCount());
        }
        if (present.get() != parties) {
            throw new IllegalStateException(latchName + " is open for " + present.get() + " of " + parties);
        }
        return true;
    }

    /** All must agree on whether there is another round: who asks first decides. */
    private boolean another(String latchName) {
        RAtomicLong verdict = client.getAtomicLong("interop-verdict:{" + latchName + "}");
        verdict.compareAndSet(0, Clock.nanos() < until ? MORE : ENOUGH);
        return verdict.get() == MORE;
    }
}
