package interop;

import java.util.concurrent.ThreadLocalRandom;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** One or two permits of a semaphore. */
final class Pool implements Contender {
    private final RSemaphore semaphore;
    private final Counter counter;
    private final String name;
    private final long hold; // milliseconds more than looking takes
    private final Diary diary;

    Pool(RedissonClient client, String name, long hold, Diary diary) {
        semaphore = client.getSemaphore(name);
        counter = new Counter(client, name);
        this.name = name;
        this.hold = hold;
        this.diary = diary;
    }

    @Override
    public boolean pass() throws InterruptedException {
        int permits = 1 + ThreadLocalRandom.current().nextInt(2);
        long start = Clock.nanos();
        semaphore.acquire(permits);
        long from = Clock.nanos();
        diary.waited(from - start);
        counter.watch(); // which only takes time
        Thread.sleep(hold);
        diary.stay(name, from, Clock.nanos(), permits, 0);
        semaphore.release(permits);
        return true;
    }
}
