<?php
// The light dynamic page: some computing, no database.
header('Content-Type: text/html; charset=utf-8');
header('Cache-Control: public, max-age=3600');
$year = 2026;
?>
<!DOCTYPE html>
<html lang="en"><head><title>Calendar of <?= $year ?></title></head><body>
<h1>Calendar of <?= $year ?></h1>
<?php for ($month = 1; $month <= 12; $month++):
    $first = gmmktime(0, 0, 0, $month, 1, $year); ?>
<h2><?= gmdate('F', $first) ?></h2>
<p><?php for ($day = 0; $day < gmdate('t', $first); $day++) echo gmdate('j ', $first + 86400 * $day); ?></p>
<?php endfor ?>
</body></html>
