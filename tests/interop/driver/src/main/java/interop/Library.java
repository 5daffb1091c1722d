package interop;

import java.util.concurrent.ThreadLocalRandom;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/** Readers, writers, and writers that go on reading. */
final class Library implements Contender {
    private final RReadWriteLock lock;
    private final Counter counter;
    private final String name;
    private final long hold; // milliseconds more than a look at the counter takes
    private final Diary diary;

    Library(RedissonClient client, String name, long hold, Diary diary) {
        lock = client.getReadWriteLock(name);
        counter = new Counter(client, name);
        this.name = name;
        this.hold = hold;
        this.diary = diary;
    }

    @Override
    public boolean pass() throws InterruptedException {
        int choice = ThreadLocalRandom.current().nextInt(10);
        if (choice < 6) {
            lockFor(lock.readLock());
            read();
        } else {
            lockFor(lock.writeLock());
            write(choice == 9);
        }
        return true;
    }

    private void lockFor(RLock side) {
        long start = Clock.nanos();
        side.lock();
        diary.waited(Clock.nanos() - start);
    }

    private void read() throws InterruptedException {
        long from = Clock.nanos();
        counter.watch();
        Thread.sleep(hold);
        diary.stay(name, from, Clock.nanos(), 1, 0);
        lock.readLock().unlock();
    }

    private void write(boolean downgrade) throws InterruptedException {
        long from = Clock.nanos();
        counter.count();
        Thread.sleep(hold);
        if (downgrade) {
            lock.readLock().lock();
        }
        diary.stay(name, from, Clock.nanos(), ALONE, 0);
        lock.writeLock().unlock();
        if (downgrade) {
            read();
        }
    }
}
