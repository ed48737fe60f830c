<?php
// The heavy dynamic page: a blog article with the queries a blog engine makes, about fifty. Their number stands at the end.
header('Content-Type: text/html; charset=utf-8');
header('Cache-Control: public, max-age=3600');

$database = new SQLite3(getenv('BENCH_DATABASE'), SQLITE3_OPEN_READONLY);
$queries = 0;

function rows(string $sql, mixed ...$values): array
{
    global $database, $queries;
    $queries++;
    $statement = $database->prepare($sql);
    foreach ($values as $index => $value) $statement->bindValue($index + 1, $value);
    $result = $statement->execute();
    $rows = [];
    while ($row = $result->fetchArray(SQLITE3_ASSOC)) $rows[] = $row;
    return $rows;
}

function option(string $name): string
{
    return rows('SELECT value FROM options WHERE name = ?', $name)[0]['value'];
}

function text(string $value): string
{
    return htmlspecialchars($value);
}

$id = (int) ($_GET['id'] ?? 250);
$article = rows('SELECT * FROM articles WHERE id = ?', $id)[0];
$author = rows('SELECT * FROM users WHERE id = ?', $article['author'])[0];
$tags = rows('SELECT name FROM tags JOIN article_tags ON tag = tags.id WHERE article = ? ORDER BY name', $id);
$comments = rows('SELECT * FROM comments WHERE article = ? ORDER BY written', $id);
$older = rows('SELECT id, title FROM articles WHERE id < ? ORDER BY id DESC LIMIT 1', $id);
$newer = rows('SELECT id, title FROM articles WHERE id > ? ORDER BY id LIMIT 1', $id);
$recent = rows('SELECT id, title, author FROM articles ORDER BY written DESC LIMIT 10');
$months = rows("SELECT strftime('%Y-%m', written, 'unixepoch') AS month, count(*) AS number FROM articles GROUP BY month");
?>
<!DOCTYPE html>
<html lang="en"><head><title><?= text($article['title']) ?> – <?= text(option('name')) ?></title></head><body>
<header><h1><?= text(option('name')) ?></h1><p><?= text(option('motto')) ?></p>
<nav><?php foreach (rows('SELECT * FROM links ORDER BY position') as $link): ?>
<a href="<?= text($link['target']) ?>"><?= text($link['title']) ?></a>
<?php endforeach ?></nav></header>
<article><h2><?= text($article['title']) ?></h2>
<p>by <?= text($author['name']) ?>, <?= gmdate('j F Y', $article['written']) ?>,
<?= count(rows('SELECT id FROM articles WHERE author = ?', $author['id'])) ?> articles</p>
<?= $article['body'] ?>
<p><?php foreach ($tags as $tag) echo text($tag['name']), ' '; ?></p></article>
<section><?php foreach ($comments as $comment):
    $writer = rows('SELECT name FROM users WHERE id = ?', $comment['author'])[0]; ?>
<h3><?= text($writer['name']) ?>, <?= gmdate('j F Y H:i', $comment['written']) ?></h3><p><?= text($comment['body']) ?></p>
<?php endforeach ?></section>
<aside><?php foreach ($recent as $other):
    $writer = rows('SELECT name FROM users WHERE id = ?', $other['author'])[0];
    $number = rows('SELECT count(*) AS number FROM comments WHERE article = ?', $other['id'])[0]['number']; ?>
<p><a href="?id=<?= $other['id'] ?>"><?= text($other['title']) ?></a> by <?= text($writer['name']) ?> (<?= $number ?>)</p>
<?php endforeach ?>
<?php foreach ($months as $month): ?>
<p><?= $month['month'] ?>: <?= $month['number'] ?></p>
<?php endforeach ?></aside>
<footer><?php foreach ([...$older, ...$newer] as $neighbour): ?>
<a href="?id=<?= $neighbour['id'] ?>"><?= text($neighbour['title']) ?></a>
<?php endforeach ?><?= text(option('footer')) ?></footer>
</body></html>
<!-- <?= $queries ?> queries -->
